package workerid

// What the tests from outside the package handle: those that use workeridtest,
// which imports this package.
type (
	Assigner        = assigner
	Config          = config
	LeaseLostError  = leaseLostError
	ClockError      = clockError
	NoWorkerIDError = noWorkerIDError
	TableError      = tableError
	Identified      = identified
)

var (
	NewFileStore = newFileStore
	TableDDL     = tableDDL
)

// NewAssigner has the error of FromProps.
func NewAssigner(store Store, c Config) (*Assigner, error) { return newAssigner(store, c), nil }
