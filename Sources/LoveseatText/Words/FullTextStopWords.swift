extension FullTextLanguage {
    /// Words that are not indexed: Snowball's lists (BSD licence), for English and French only.
    var stopWords: Set<String> {
        switch self {
        case .english: Self.englishWords
        case .french: Self.frenchWords
        default: []
        }
    }

    private static func words(_ text: String) -> Set<String> {
        Set(text.split(whereSeparator: { $0 == " " || $0 == "\n" }).map(String.init))
    }

    private static let englishWords = words(
        """
        a about above after again against all am an and any are aren't as at be because been before being
        below between both but by can't cannot could couldn't did didn't do does doesn't doing don't down
        during each few for from further had hadn't has hasn't have haven't having he he'd he'll he's her
        here here's hers herself him himself his how how's i i'd i'll i'm i've if in into is isn't it it's
        its itself let's me more most mustn't my myself no nor not of off on once only or other ought our
        ours ourselves out over own same shan't she she'd she'll she's should shouldn't so some such than
        that that's the their theirs them themselves then there there's these they they'd they'll they're
        they've this those through to too under until up very was wasn't we we'd we'll we're we've were
        weren't what what's when when's where where's which while who who's whom why why's with won't would
        wouldn't you you'd you'll you're you've your yours yourself yourselves
        """
    )

    private static let frenchWords = words(
        """
        ai aie aient aies ait as au aura aurai auraient aurais aurait auras aurez auriez aurions aurons
        auront aux avaient avais avait avec avez aviez avions avons ayant ayez ayons c ce ceci cela celà ces
        cet cette d dans de des du elle en es est et eu eue eues eurent eus eusse eussent eusses eussiez
        eussions eut eux eûmes eût eûtes furent fus fusse fussent fusses fussiez fussions fut fûmes fût
        fûtes ici il ils j je l la le les leur leurs lui m ma mais me mes moi mon même n ne nos notre nous
        on ont ou par pas pour qu que quel quelle quelles quels qui s sa sans se sera serai seraient serais
        serait seras serez seriez serions serons seront ses soi soient sois soit sommes son sont soyez
        soyons suis sur t ta te tes toi ton tu un une vos votre vous y à étaient étais était étant étiez
        étions été étée étées étés êtes
        """
    )
}
