package workerid

// NewSQLStore returns a [Store] that keeps records in a table of the database that dsn names,
// in the form of go-sql-driver/mysql. The table may be qualified by a schema, and is created
// when it is missing. The error is a [*spi.PropError].
func NewSQLStore(dsn, table, namespace string) (Store, error) {
	return newSQLStore(dsn, table, namespace)
}
