package applications

// A program is a public Go module whose tests use MySQL.
type program struct {
	module, version string
	layer           string   // how it reaches database/sql
	packages        []string // directories with the tests
	mariadb         bool     // it also runs on MariaDB
	databases       []string // databases that its tests expect
	schema          []string // files with the tables of the first database, the second …
	setup           []string // a command's package and arguments, which creates the tables
	tags            string   // build tags
	unavailable     []string // modules that it imports for other databases, which not every proxy has
	args            []string // flags of its tests
	skip            string   // tests that need another database
	env             []string // environment variables; in these and in args, $DSN is the server
	// files replaces files that start containers, by files in testdata.
	files map[string]string

	dir    string   // a copy of the module
	tables []string // the contents of schema
}

var programs = []program{
	{
		module: "github.com/google/trillian", version: "v1.8.0", layer: "database/sql", mariadb: true,
		packages: []string{"storage/mysql", "quota/mysqlqm"}, env: []string{"TEST_MYSQL_URI=$DSN/"},
	}, {
		module: "github.com/openfga/openfga", version: "v1.22.1", layer: "squirrel",
		packages: []string{"pkg/storage/mysql"},
		files:    map[string]string{"pkg/testfixtures/storage/mysql.go": "openfga.go.txt"},
	}, {
		module: "github.com/letsencrypt/boulder", version: "v0.20260811.0", layer: "borp", mariadb: true,
		packages:  []string{"sa"},
		databases: []string{"boulder_sa", "incidents_sa", "mtcmeta_44947_4_1_0_44"}, env: []string{"DB_ADDR=127.0.0.1:3306"},
		schema: []string{"sa/db/01-boulder_sa.sql", "sa/db/01-incidents_sa.sql", "sa/db/01-mtcmeta_44947_4_1_0_44.sql"},
	}, {
		module: "github.com/casbin/gorm-adapter/v3", version: "v3.41.0", layer: "GORM",
		packages: []string{"."}, databases: []string{"casbin", "casbin2"},
		skip: "^(TestAdapterWithCustomTable|TestAdapterWithoutAutoMigrate|TestAdapters|TestAddPolicy)$", // Postgres
	}, {
		module: "xorm.io/xorm", version: "v1.4.3", layer: "xorm", mariadb: true, packages: []string{"tests"},
		databases: []string{"xorm_test"}, unavailable: []string{"gitee.com/travelliu/dm"},
		args: []string{"-db=mysql", "-conn_str=$DSN/xorm_test?charset=utf8mb4", "-show_sql=false"},
	}, {
		module: "github.com/gobuffalo/pop/v6", version: "v6.4.1", layer: "pop", packages: []string{"."},
		databases: []string{"pop_test"}, env: []string{"SODA_DIALECT=mysql"},
		setup: []string{"./soda", "migrate", "-e", "mysql", "-c", "database.yml", "-p", "testdata/migrations"},
	}, {
		module: "github.com/go-gorp/gorp/v3", version: "v3.1.0", layer: "gorp", mariadb: true,
		packages: []string{"."}, databases: []string{"gorptest"}, tags: "integration",
		env: []string{"GORP_TEST_DSN=$DSN/gorptest", "GORP_TEST_DIALECT=mysql"},
	}, {
		module: "github.com/doug-martin/goqu/v9", version: "v9.19.0", layer: "goqu",
		packages: []string{"dialect/mysql"}, databases: []string{"goqumysql"},
		env: []string{"MYSQL_URI=$DSN/goqumysql?parseTime=true"},
	}, {
		module: "github.com/cschleiden/go-workflows", version: "v1.2.0", layer: "database/sql",
		packages: []string{"backend/mysql"},
	},
}
