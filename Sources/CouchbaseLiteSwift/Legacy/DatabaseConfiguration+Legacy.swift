extension DatabaseConfiguration {
    /// The default of ``mmapEnabled``, true.
    @available(*, deprecated, message: "SQLite decides: remove the setting")
    public static var defaultMmapEnabled: Bool { true }

    /// Has no effect: how SQLite reads its file is not a setting of Loveseat. It is always true.
    @available(*, deprecated, message: "SQLite decides: remove the setting")
    public var mmapEnabled: Bool {
        get { true }
        set {}
    }
}
