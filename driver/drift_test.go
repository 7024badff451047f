package driver

import (
	"database/sql/driver"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/driver/internal/base"
)

// knownInterfaces is every interface of database/sql/driver and what of ours has it. A
// new Go release that adds one fails TestDrift_interfacesOfDatabaseSQL until it
// is here.
var knownInterfaces = map[string]struct {
	iface reflect.Type
	ours  []any // one value of each of our types that has it
	why   string
}{
	"Driver":        {reflect.TypeFor[driver.Driver](), []any{Driver{}, &wrapped{}}, ""},
	"DriverContext": {reflect.TypeFor[driver.DriverContext](), []any{Driver{}, &wrapped{}}, ""},
	"Connector":     {reflect.TypeFor[driver.Connector](), []any{&Connector{}}, ""},

	"Conn":               {reflect.TypeFor[driver.Conn](), conns, ""},
	"ConnBeginTx":        {reflect.TypeFor[driver.ConnBeginTx](), conns, ""},
	"ConnPrepareContext": {reflect.TypeFor[driver.ConnPrepareContext](), conns, ""},
	"Execer":             {reflect.TypeFor[oldExecer](), conns, ""},
	"ExecerContext":      {reflect.TypeFor[driver.ExecerContext](), conns, ""},
	"NamedValueChecker":  {reflect.TypeFor[driver.NamedValueChecker](), append([]any{&stmt{}}, conns...), ""},
	"Pinger":             {reflect.TypeFor[driver.Pinger](), conns, ""},
	"Queryer":            {reflect.TypeFor[oldQueryer](), conns, ""},
	"QueryerContext":     {reflect.TypeFor[driver.QueryerContext](), conns, ""},
	"SessionResetter":    {reflect.TypeFor[driver.SessionResetter](), []any{&conn{}}, ""},
	"Validator":          {reflect.TypeFor[driver.Validator](), []any{&conn{}}, ""},

	"Stmt":             {reflect.TypeFor[driver.Stmt](), []any{&stmt{}}, ""},
	"StmtExecContext":  {reflect.TypeFor[driver.StmtExecContext](), []any{&stmt{}}, ""},
	"StmtQueryContext": {reflect.TypeFor[driver.StmtQueryContext](), []any{&stmt{}}, ""},
	"ColumnConverter": {reflect.TypeFor[interface {
		ColumnConverter(int) driver.ValueConverter
	}](), []any{&stmt{}}, ""},

	"Rows":                           {reflect.TypeFor[driver.Rows](), []any{&base.Rows{}}, ""},
	"RowsNextResultSet":              {reflect.TypeFor[driver.RowsNextResultSet](), []any{&base.Rows{}}, ""},
	"RowsColumnTypeScanType":         {reflect.TypeFor[driver.RowsColumnTypeScanType](), []any{&base.Rows{}}, ""},
	"RowsColumnTypeDatabaseTypeName": {reflect.TypeFor[driver.RowsColumnTypeDatabaseTypeName](), []any{&base.Rows{}}, ""},
	"RowsColumnTypeLength":           {reflect.TypeFor[driver.RowsColumnTypeLength](), []any{&base.Rows{}}, ""},
	"RowsColumnTypeNullable":         {reflect.TypeFor[driver.RowsColumnTypeNullable](), []any{&base.Rows{}}, ""},
	"RowsColumnTypePrecisionScale":   {reflect.TypeFor[driver.RowsColumnTypePrecisionScale](), []any{&base.Rows{}}, ""},

	"Tx":             {why: "not wrapped"},
	"Result":         {why: "the base's, or the fill's own"},
	"Valuer":         {why: "of values, not of drivers"},
	"ValueConverter": {why: "of values, not of drivers"},
}

var conns = []any{&conn{}}

func TestDrift_interfacesOfDatabaseSQL(t *testing.T) {
	ifaces, _ := declarations(t, filepath.Join(goEnv(t, "env", "GOROOT"), "src/database/sql/driver"))
	if len(ifaces) < 25 {
		t.Fatalf("only %d interfaces found: %v", len(ifaces), slices.Sorted(maps.Keys(ifaces)))
	}
	for name, methods := range ifaces {
		k, ok := knownInterfaces[name]
		if !ok {
			t.Errorf("database/sql/driver has %s %v, which this package does not know", name, methods)
			continue
		}
		if (k.iface == nil) == (k.why == "") {
			t.Errorf("%s: say what has it, or why nothing does", name)
		}
		for _, own := range k.ours {
			if !reflect.TypeOf(own).Implements(k.iface) {
				t.Errorf("%T is no driver.%s", own, name)
			}
		}
	}
	for name := range knownInterfaces {
		if _, ok := ifaces[name]; !ok {
			t.Errorf("database/sql/driver has no %s", name)
		}
	}
}

// TestDrift_interfacesOfBase compares with go-sql-driver: whatever its connection,
// statement, connector and driver implement, ours do.
func TestDrift_interfacesOfBase(t *testing.T) {
	ifaces, _ := declarations(t, filepath.Join(goEnv(t, "env", "GOROOT"), "src/database/sql/driver"))
	_, base := declarations(t, goEnv(t, "list", "-m", "-f", "{{.Dir}}", "github.com/go-sql-driver/mysql"))
	roles := map[string]any{"Conn": &conn{}, "Stmt": &stmt{}, "Connector": &Connector{}, "Driver": Driver{}}
	for role, own := range roles {
		found := false
		for name, methods := range base {
			if !includes(methods, ifaces[role]) {
				continue
			}
			found = true
			for iface, wants := range ifaces {
				k := knownInterfaces[iface]
				if includes(methods, wants) && k.iface != nil && !reflect.TypeOf(own).Implements(k.iface) {
					t.Errorf("the base's %s is a %s, our %T is not", name, iface, own)
				}
			}
		}
		if !found {
			t.Errorf("no %s found in the base's sources", role)
		}
	}
}

func includes(methods, wants []string) bool {
	return len(wants) > 0 && !slices.ContainsFunc(wants, func(m string) bool { return !slices.Contains(methods, m) })
}

// declarations reads a package's exported interfaces and the methods of its
// types, each as its name and signature.
func declarations(t *testing.T, dir string) (ifaces, methods map[string][]string) {
	t.Helper()
	ifaces, methods = map[string][]string{}, map[string][]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources in %s: %v", dir, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := must(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution))(t)
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.GenDecl:
				addInterfaces(ifaces, decl)
			case *ast.FuncDecl:
				addMethod(methods, decl)
			}
		}
	}
	embedded(ifaces)
	return ifaces, methods
}

func addInterfaces(ifaces map[string][]string, decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		typ, ok := spec.(*ast.TypeSpec)
		if !ok || !typ.Name.IsExported() {
			continue
		}
		iface, ok := typ.Type.(*ast.InterfaceType)
		if !ok {
			continue
		}
		ifaces[typ.Name.Name] = []string{}
		for _, field := range iface.Methods.List {
			if len(field.Names) == 0 { // embedded
				if id, ok := field.Type.(*ast.Ident); ok {
					ifaces[typ.Name.Name] = append(ifaces[typ.Name.Name], "+"+id.Name)
				}
				continue
			}
			method := field.Names[0].Name + signature(field.Type.(*ast.FuncType))
			ifaces[typ.Name.Name] = append(ifaces[typ.Name.Name], method)
		}
	}
}

// embedded replaces each "+Name" by the methods of Name.
func embedded(ifaces map[string][]string) {
	for name, methods := range ifaces {
		var all []string
		for _, m := range methods {
			if other, ok := strings.CutPrefix(m, "+"); ok {
				all = append(all, ifaces[other]...)
			} else {
				all = append(all, m)
			}
		}
		ifaces[name] = all
	}
}

func addMethod(methods map[string][]string, decl *ast.FuncDecl) {
	if decl.Recv == nil {
		return
	}
	recv := decl.Recv.List[0].Type
	if star, ok := recv.(*ast.StarExpr); ok {
		recv = star.X
	}
	if id, ok := recv.(*ast.Ident); ok {
		methods[id.Name] = append(methods[id.Name], decl.Name.Name+signature(decl.Type))
	}
}

// signature is a method's types, the same text for those of database/sql/driver
// and of a package that imports it.
func signature(f *ast.FuncType) string {
	var b strings.Builder
	for _, list := range []*ast.FieldList{f.Params, f.Results} {
		b.WriteByte('(')
		for i := 0; list != nil && i < len(list.List); i++ {
			typ := strings.ReplaceAll(types.ExprString(list.List[i].Type), "driver.", "")
			b.WriteString(strings.Repeat(typ+",", max(1, len(list.List[i].Names))))
		}
		b.WriteByte(')')
	}
	return b.String()
}

// goEnv asks the go command for a directory.
func goEnv(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}
