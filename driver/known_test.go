package driver

// KnownDefects are cases of the driver's tests that fail on a server by a defect
// of the driver that is known, by "server/shape: case", each with what happens.
// A case in here that passes fails its test: take it out. The table should be
// empty.
var KnownDefects = map[string]string{
	"mysql/beside AUTO_INCREMENT: random":                 besideUpsert,
	"mysql/beside AUTO_INCREMENT: duplicate new":          besideUpsert,
	"mysql/beside AUTO_INCREMENT: duplicate SET":          besideUpsert,
	"mysql/beside AUTO_INCREMENT: row alias":              besideUpsert,
	"mysql/beside AUTO_INCREMENT: row alias with columns": besideUpsert,
	"mariadb/beside AUTO_INCREMENT: random":               besideUpsert,
	"mariadb/beside AUTO_INCREMENT: duplicate new":        besideUpsert,
	"mariadb/beside AUTO_INCREMENT: duplicate SET":        besideUpsert,
	"mariadb-11.8/beside AUTO_INCREMENT: random":          besideUpsert,
	"mariadb-11.8/beside AUTO_INCREMENT: duplicate new":   besideUpsert,
	"mariadb-11.8/beside AUTO_INCREMENT: duplicate SET":   besideUpsert,
}

const besideUpsert = "WithKeys tells an upsert's new row by the key of the other column"
