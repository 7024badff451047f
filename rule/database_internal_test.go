package rule

import "testing"

func TestDatabaseName_ofDSNs(t *testing.T) {
	for dsn, want := range map[string]string{
		"":                                     "",
		"/":                                    "tcp(127.0.0.1:3306)/",
		"/app":                                 "tcp(127.0.0.1:3306)/app",
		"u@/app":                               "tcp(127.0.0.1:3306)/app",
		"u:p@tcp/app":                          "tcp(127.0.0.1:3306)/app",
		"u:p@tcp(DB.example:3306)/App":         "tcp(db.example:3306)/App",
		"u:p@tcp(db.example)/App?a=b&c=d":      "tcp(db.example:3306)/App",
		"u:p@ss:w(o)rd/@tcp(db:1)/app":         "tcp(db:1)/app",
		"u:p@tcp([2001:db8::1]:3307)/app":      "tcp([2001:db8::1]:3307)/app",
		"u:p@unix(/run/mysqld/Sock)/app":       "unix(/run/mysqld/Sock)/app",
		"u:p@unix/app":                         "unix(/tmp/mysql.sock)/app",
		"u:p@cloud(Project:Region:name)/app?x": "cloud(Project:Region:name)/app",
	} {
		if have := databaseName(dsn); have != want {
			t.Errorf("%s\nhave: %s\nwant: %s", dsn, have, want)
		}
	}
}
