package doctor

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/schema"
)

// grants are what SHOW GRANTS says of the connection's user. Known is false where
// the server does not say it.
type grants struct {
	known bool
	list  []grant
}

type grant struct {
	revoked       bool
	schema, table string // a pattern, and a name; * for all
	rights        map[string][]string
}

func readGrants(ctx context.Context, q schema.Queryer) (g grants) {
	queries := []string{"SHOW GRANTS"}
	roles, _ := schema.Row(ctx, q, "SELECT CURRENT_ROLE()", 1)
	if strings.Contains(roles[0], "@") { // MySQL's, which SHOW GRANTS alone does not follow
		queries = []string{"SHOW GRANTS FOR CURRENT_USER() USING " + roles[0], "SHOW GRANTS"}
	}
	for _, query := range queries {
		err := schema.Rows(ctx, q, query, func(row []string) {
			if parsed, ok := parseGrant(row[0]); ok {
				g.list = append(g.list, parsed)
			}
		})
		if err == nil {
			g.known = true
			return g
		}
	}
	return g
}

const grantedOn = "(\\*|`(?:[^`]|``)+`)"

var (
	grantForm = regexp.MustCompile("^(GRANT|REVOKE) (.+?) ON (?:TABLE )?" + grantedOn + `\.` + grantedOn + " (?:TO|FROM) ")
	rightForm = regexp.MustCompile(`([A-Z][A-Z ]*[A-Z])\s*(?:\(([^)]*)\))?`)
)

func parseGrant(line string) (grant, bool) {
	m := grantForm.FindStringSubmatch(line)
	if m == nil {
		return grant{}, false
	}
	g := grant{revoked: m[1] == "REVOKE", schema: unquoted(m[3]), table: unquoted(m[4]), rights: map[string][]string{}}
	for _, r := range rightForm.FindAllStringSubmatch(m[2], -1) {
		var columns []string
		if r[2] != "" {
			for c := range strings.SplitSeq(r[2], ",") {
				columns = append(columns, unquoted(strings.TrimSpace(c)))
			}
		}
		g.rights[r[1]] = columns
	}
	return g, true
}

func unquoted(name string) string {
	if len(name) > 1 && name[0] == '`' {
		return strings.ReplaceAll(name[1:len(name)-1], "``", "`")
	}
	return name
}

// has reports whether the user has a right on a table, or on one column of it, or,
// without table, in the whole schema.
func (g grants) has(right, inSchema, table, column string) bool {
	if !g.known {
		return true
	}
	revoked := slices.ContainsFunc(g.list, func(o grant) bool {
		_, all := o.rights["ALL PRIVILEGES"]
		_, one := o.rights[right]
		return o.revoked && (all || one) && o.meets(inSchema)
	})
	for _, o := range g.list {
		isOn := o.meets(inSchema) && (o.table == "*" || strings.EqualFold(o.table, table))
		if o.revoked || revoked && o.schema == "*" || !isOn {
			continue
		}
		_, all := o.rights["ALL PRIVILEGES"]
		columns, one := o.rights[right]
		isColumn := func(c string) bool { return strings.EqualFold(c, column) }
		if all || one && (columns == nil || slices.ContainsFunc(columns, isColumn)) {
			return true
		}
	}
	return false
}

// meets reports whether a grant is for a schema. The name of one is a pattern where
// the grant is for all of its tables.
func (g grant) meets(name string) bool {
	if g.schema == "*" || g.table != "*" {
		return g.schema == "*" || strings.EqualFold(g.schema, name)
	}
	pattern, err := regexp.Compile("(?i)^" + wildcards.Replace(regexp.QuoteMeta(g.schema)) + "$")
	return err == nil && pattern.MatchString(name)
}

// wildcards turns those of LIKE into a regular expression's, where a backslash has been doubled.
var wildcards = strings.NewReplacer(`\\\\`, `\\`, `\\%`, "%", `\\_`, "_", "%", ".*", "_", ".")
