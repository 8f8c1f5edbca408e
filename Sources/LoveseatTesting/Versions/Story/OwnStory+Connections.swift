import LoveseatBLIP
import LoveseatModel
import LoveseatReplication

extension OwnStory {
    func connect(_ number: Int, _ step: JSONValue) throws {
        let names = (active: step["active"]?.string ?? "", passive: step["passive"]?.string ?? "")
        let plan = replay.plan(number, step)
        if names.active == ownName {
            try connect(to: lite(names.passive), isLiteActive: false, number, step, plan)
        } else if names.passive == ownName {
            try connect(to: lite(names.active), isLiteActive: true, number, step, plan)
        } else {
            exchange(lite(names.active), lite(names.passive), plan, number)
        }
    }

    /// Two peers of Couchbase Lite.
    private func exchange(_ active: LitePeer, _ passive: LitePeer, _ plan: LitePlan, _ number: Int) {
        createCollections(passive.database, number, plan)
        var dice = SeededGenerator(seed: 1)
        var exchange = LiteExchange(
            active: LiteSession(
                active: active.database,
                plan,
                server: replay.address(inConnection: number) ?? ""
            ),
            passive: LiteSession(passive: passive.database, client: passive.nextClient())
        )
        for _ in 0..<2_000 {
            exchange.step(time: Int(active.wall.now / 1_000), using: &dice)
            if exchange.isIdle, exchange.active.isFinished { return }
        }
        problems.append("an exchange does not end")
    }

    private func connect(
        to lite: LitePeer,
        isLiteActive: Bool,
        _ number: Int,
        _ step: JSONValue,
        _ recorded: LitePlan
    ) throws {
        var plan = LiteLink.Plan()
        plan.isLiteActive = isLiteActive
        (plan.pushes, plan.pulls) = (recorded.pushes, recorded.pulls)
        (plan.isContinuous, plan.resets) = (recorded.isContinuous, recorded.resetsCheckpoint)
        plan.usesDeltas = true
        plan.collections = recorded.bindings.compactMap { CollectionName(path: $0.collection) }
        plan.documentIDs = recorded.bindings.first?.documentIDs
        plan.link.latency = 1...1
        plan.workDelay = 0...1
        plan.pushFilter = recorded.pushFilter
        plan.resolvers.lite = recorded.resolver
        if step["options"]?.array?.contains("--resolver") == true {
            plan.resolvers.isCustom = true
            plan.resolvers.own = { Resolution(recorded.resolver(LiteConflict($0))) }
        }
        plan.address = replay.address(inConnection: number)
        createCollections(lite.database, number, recorded)
        let isExpectedToFail = step["result"]?["ok"]?.bool == false
        try run(lite, plan, number, mayFail: isExpectedToFail)
    }

    /// The collections of a passive peer show in its answer.
    private func createCollections(_ database: LiteDatabase, _ number: Int, _ plan: LitePlan) {
        let answer = recording.messages(number).first { !$0.isActive && $0.type == .response }
        let items = LiteSession.parse(answer?.message.body ?? [])?.array ?? []
        for (binding, item) in zip(plan.bindings, items)
        where !item.isNull && database.collections[binding.collection] == nil {
            database.collections[binding.collection] = LiteDatabase.Collection()
        }
    }

    private func run(_ lite: LitePeer, _ plan: LiteLink.Plan, _ number: Int, mayFail: Bool) throws {
        let surroundings = LiteLink.Surroundings(
            runtime: runtime,
            trace: { [unowned self] in detail?("  \($0)") },
            detail: detail.map { detail in { detail("  \($0)") } },
            onEnd: { _ in }
        )
        let link = LiteLink(own, lite, plan: plan, seed: 1, surroundings)
        try link.open()
        var delay = plan.isContinuous ? 200 : 4
        for case .act(let act) in recording.connections[number - 1] {
            clock.schedule(after: delay) { [self] in perform(act, link) }
            delay += plan.isContinuous ? 200 : 1
        }
        if plan.isContinuous { clock.schedule(after: delay + 500) { link.cut() } }
        var steps = 0
        while clock.step() {
            steps += 1
            if !lite.drainChanges().isEmpty { link.scheduleWork() }
            guard steps < 200_000 else { return problems.append("connection \(number) does not end") }
        }
        if mayFail { return }
        if let failure = link.failure { problems.append("connection \(number): \(failure)") }
        if let failure = link.line.session.failure {
            problems.append("connection \(number): Couchbase Lite says \(failure)")
        }
    }

    /// Something is done to the passive peer, or to the network, while they are connected.
    private func perform(_ act: JSONValue, _ link: LiteLink) {
        if act["cut"] != nil { return link.cut() }
        detail?("  act \(act)")
        let id = act["put"]?.string ?? act["delete"]?.string ?? act["purge"]?.string ?? ""
        let edit: LiteOperation.Edit =
            act["purge"] != nil ? .purge : act["delete"] != nil ? .delete : .put(act["body"]?.object ?? [:])
        do {
            if link.plan.isLiteActive {
                return try self.edit(LiteOperation(id: id, collection: "_default", edit: edit))
            }
            let database = link.lite.database
            switch edit {
            case .put(let body): try database.edit(id, body)
            case .delete: try database.delete(id)
            case .purge, .unknown: database.purge(id)
            }
            link.scheduleWork()
        } catch { problems.append("the act \(act) fails: \(error)") }
    }
}

extension LiteConflict {
    fileprivate init(_ conflict: ConflictCase) {
        func revision(_ side: ConflictCase.Side) -> LiteRevision {
            let body = JSONElement(side.body).value.object
            return LiteRevision(.legacy(side.revision), isDeleted: side.isDeleted, body: body)
        }
        self.init(
            id: conflict.documentID,
            local: revision(conflict.local),
            remote: revision(conflict.remote)
        )
    }
}

extension Resolution {
    /// The decision of a recorded resolver.
    fileprivate init(_ resolution: LiteResolution) {
        self =
            switch resolution {
            case .local: .local
            case .remote: .remote
            case .merged(let body): .merged(JSONText(canonical: .object(body)))
            case .deleted: .deleted
            }
    }
}
