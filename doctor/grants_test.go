package doctor

import (
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
)

func TestGrants_has(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		right string
		want  bool // on app.t_order, column id
	}{
		{"none", nil, "INSERT", false},
		{"USAGE", []string{"GRANT USAGE ON *.* TO `u`@`%`"}, "INSERT", false},
		{"everywhere", []string{"GRANT SELECT, INSERT, CREATE TEMPORARY TABLES ON *.* TO `u`@`%`"}, "CREATE TEMPORARY TABLES", true},
		{"all", []string{"GRANT ALL PRIVILEGES ON *.* TO `root`@`%` WITH GRANT OPTION"}, "INSERT", true},
		{"the schema", []string{"GRANT INSERT ON `app`.* TO `u`@`%`"}, "INSERT", true},
		{"another schema", []string{"GRANT INSERT ON `apps`.* TO `u`@`%`"}, "INSERT", false},
		{"a pattern", []string{"GRANT INSERT ON `a%`.* TO `u`@`%`"}, "INSERT", true},
		{"a pattern of one letter", []string{"GRANT INSERT ON `a_p`.* TO `u`@`%`"}, "INSERT", true},
		{"no pattern", []string{"GRANT INSERT ON `a\\_p`.* TO `u`@`%`"}, "INSERT", false},
		{"the table", []string{"GRANT SELECT, INSERT ON `app`.`t_order` TO `u`@`%`"}, "INSERT", true},
		{"another table", []string{"GRANT INSERT ON `app`.`t_item` TO `u`@`%`"}, "INSERT", false},
		{"the column", []string{"GRANT SELECT (`name`), INSERT (`id`, `name`) ON `app`.`t_order` TO `u`@`%`"}, "INSERT", true},
		{"another column", []string{"GRANT SELECT (`name`), INSERT (`id`, `name`) ON `app`.`t_order` TO `u`@`%`"}, "SELECT", false},
		{"of MariaDB, with a password", []string{"GRANT INSERT ON *.* TO `u`@`%` IDENTIFIED BY PASSWORD '*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19'"}, "INSERT", true},
		{"revoked in part", []string{"GRANT INSERT ON *.* TO `u`@`%`", "REVOKE INSERT ON `app`.* FROM `u`@`%`"}, "INSERT", false},
		{"another right revoked", []string{"GRANT INSERT ON *.* TO `u`@`%`", "REVOKE DELETE ON `app`.* FROM `u`@`%`"}, "INSERT", true},
		{"elsewhere revoked", []string{"GRANT INSERT ON *.* TO `u`@`%`", "REVOKE INSERT ON `mysql`.* FROM `u`@`%`"}, "INSERT", true},
		{"a role, and a proxy", []string{"GRANT `r`@`%` TO `u`@`%`", "GRANT PROXY ON ''@'%' TO 'u'@'%' WITH GRANT OPTION"}, "INSERT", false},
	} {
		g := grants{known: true}
		for _, line := range c.lines {
			if parsed, ok := parseGrant(line); ok {
				g.list = append(g.list, parsed)
			}
		}
		must.Equal(t, g.has(c.right, "app", "t_order", "id"), c.want, c.name)
	}
	if !(grants{}).has("INSERT", "app", "t", "id") {
		t.Error("rights that the server does not tell are missed")
	}
}
