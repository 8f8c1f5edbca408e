import LoveseatAssertions
import LoveseatModel
import LoveseatReplication

/// Makes the parts of a session's collections, in the form of the protocol that the two sides use.
struct CollectionSetup {
    let form: ProtocolForm
    let tuning: ReplicationTuning

    /// The collections of an active side, which names them to the peer.
    func collections(_ plan: ActivePlan, _ replicas: [any Replica]) -> [CollectionSession] {
        zip(plan.collections, replicas).enumerated().map { index, bound in
            let (binding, replica) = bound
            var checkpoint = CheckpointSession(
                replica,
                collection: index,
                id: binding.checkpointID,
                repairs: tuning.checkpointRepairs,
                plan
            )
            checkpoint.wireIndex = form.wireIndex(index)
            let pull = PullSession(replica, PullSetup(plan, collection: index, form, tuning), form)
            return CollectionSession(name: binding.name, replica: replica, checkpoint: checkpoint, pull: pull)
        }
    }

    /// The collections of a passive side, which the peer has named.
    func collections(
        _ names: [CollectionName],
        _ plan: PassivePlan,
        _ replicas: [any Replica]
    ) -> [CollectionSession] {
        zip(names, replicas).enumerated().map { index, bound in
            let (name, replica) = bound
            let setup = PullSetup(plan, collection: index, form, tuning)
            return CollectionSession(
                name: name,
                replica: replica,
                pull: PullSession(replica, setup, form)
            )
        }
    }

    /// Begins the pull and the push of an active side, after the checkpoints of both sides were compared.
    func start(
        _ collection: inout CollectionSession,
        at index: Int,
        _ plan: ActivePlan,
        _ effects: inout SessionEffects
    ) {
        guard let checkpoint = collection.checkpoint else {
            return impossible("an active side has no checkpoint of collection \(index)")
        }
        let replica = collection.replica
        replica.believeMarks(checkpoint.trust)
        invariant(
            collection.pull.isQuiet,
            "collection \(index) has received something before its pull began"
        )
        collection.pull = PullSession(
            replica,
            PullSetup(plan, collection: index, form, tuning),
            since: checkpoint.start.remote,
            form
        )
        if plan.pulls {
            collection.failedBefore = effects.ask { try replica.failures() } ?? []
            let request = SubChangesMessage(
                plan,
                collection: index,
                since: checkpoint.start.remote,
                form,
                tuning
            )
            effects.append(.send(request.message, then: .subscribe(collection: index)))
        }
        if plan.pushes {
            collection.push = PushSession(
                replica,
                PushSetup(plan, collection: index, form, tuning),
                start: checkpoint.start.completed,
                peer: PushTarget(form)
            )
        }
    }

    /// The push to which the peer subscribed.
    func push(
        of replica: any Replica,
        at index: Int,
        to subscription: SubChangesMessage,
        sendsDeltas: Bool
    ) -> PushSession {
        var push = PushSession(
            replica,
            PushSetup(subscription, collection: index, sendsDeltas: sendsDeltas, form, tuning),
            start: subscription.completed,
            peer: PushTarget(form)
        )
        // Later deletions are announced: the peer may have the document by then.
        if subscription.activeOnly || (subscription.lateActiveOnly && form.extensions != nil) {
            push.feed.tombstonesSkipped = replica.lastSequence
        }
        return push
    }
}
