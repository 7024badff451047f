package driver

// KnownDefects are cases of the driver's tests that fail on a server by a defect
// of the driver that is known, by "server/case", each with what happens. A case
// in here that passes fails its test: take it out. The table should be empty.
var KnownDefects = map[string]string{
	"mysql/LAST_INSERT_ID after an upsert": lostByUpsert,
	"mysql/bun upsert":                     lostByUpsert,
	"mysql/duplicate SET":                  lostByUpsert,
	"mysql/duplicate bound":                lostByUpsert,
	"mysql/duplicate changed":              lostByUpsert,
	"mysql/duplicate explicit":             lostByUpsert,
	"mysql/duplicate twice":                lostByUpsert,
	"mysql/duplicate two":                  lostByUpsert,
	"mysql/duplicate unchanged":            lostByUpsert,
	"mysql/ent ignore":                     lostByUpsert,
	"mysql/gorm OnConflict DoNothing":      lostByUpsert,
	"mysql/gorm OnConflict UpdateAll":      lostByUpsert,
	"mysql/upsert the key":                 lostByUpsert,
	"mysql/upsert with VALUES":             lostByUpsert,
	"mysql/random":                         lostByUpsert,
	"mysql/MariaDB comment":                "a key is reported for an INSERT in an executable comment that did not run",
	"mysql/wrong JSON from a query":        "the server's error names the temporary table of INSERT … SELECT",
}

const lostByUpsert = "after an upsert that met an existing row LAST_INSERT_ID() is 0"
