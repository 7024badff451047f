package workerid

// What the tests from outside the package handle: those that use workeridtest,
// which imports this package.
type (
	Assigner       = assigner
	Config         = config
	LeaseLostError = leaseLostError
)

var (
	NewFileStore = newFileStore
	NewSQLStore  = newSQLStore
)

// NewAssigner has the error of FromProps.
func NewAssigner(store Store, c Config) (*Assigner, error) { return newAssigner(store, c), nil }
