package leaf

import (
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/spi"
)

// ParseJDBC reads a database's address in the form of MySQL's and MariaDB's
// JDBC drivers: jdbc:mysql://host:port/database?option=value&…
//
// Of the options those about TLS (useSSL, requireSSL,
// verifyServerCertificate, sslMode), connectTimeout and socketTimeout (both in
// milliseconds), user and password are followed; the rest, serverTimezone and
// characterEncoding among them, do not touch what this package reads and are
// ignored. TLS is used when the server has it unless the options say otherwise.
//
// The errors are [*spi.PropError] and do not show the address: it may hold a
// password.
func ParseJDBC(address string) (*mysql.Config, error) {
	rest, ok := cutScheme(address)
	if !ok {
		return nil, badJDBC("one address of the form jdbc:mysql://host:3306/database")
	}
	u, err := url.Parse("mysql://" + rest)
	if err != nil || u.Host == "" {
		return nil, badJDBC("host, port and database as in jdbc:mysql://host:3306/database; percent-encode what is special in them")
	}
	if strings.ContainsAny(u.Host, ",()") {
		return nil, badJDBC("one host: two servers would hand out the same numbers")
	}
	cfg := mysql.NewConfig()
	cfg.Net = "tcp"
	cfg.Addr = hostPort(u)
	cfg.DBName = strings.TrimPrefix(u.Path, "/")
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, badJDBC("options of the form name=value, joined by &")
	}
	return cfg, applyOptions(cfg, query)
}

func cutScheme(address string) (string, bool) {
	for _, scheme := range []string{"jdbc:mysql://", "jdbc:mariadb://"} {
		if len(address) > len(scheme) && strings.EqualFold(address[:len(scheme)], scheme) {
			return address[len(scheme):], true
		}
	}
	return "", false
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = "3306"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

func applyOptions(cfg *mysql.Config, query url.Values) error {
	option := map[string]string{}
	for name, values := range query {
		option[strings.ToLower(name)] = values[len(values)-1]
	}
	for name, field := range map[string]*string{"user": &cfg.User, "password": &cfg.Passwd} {
		if v := option[name]; v != "" {
			*field = v
		}
	}
	connect, err := milliseconds(option, "connectTimeout")
	if err != nil {
		return err
	}
	socket, err := milliseconds(option, "socketTimeout")
	if err != nil {
		return err
	}
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = connect, socket, socket
	cfg.TLSConfig, err = tlsMode(option)
	return err
}

func milliseconds(option map[string]string, name string) (time.Duration, error) {
	v := option[strings.ToLower(name)]
	if v == "" {
		return 0, nil
	}
	ms, err := strconv.ParseUint(v, 10, 31)
	if err != nil {
		return 0, badJDBC(name + " in milliseconds")
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// tlsMode maps Connector/J's options to go-sql-driver's tls parameter. sslMode
// wins over the older ones. VERIFY_CA checks the host name too here.
func tlsMode(option map[string]string) (string, error) {
	is := func(name, value string) bool { return strings.EqualFold(option[name], value) }
	switch mode := strings.ToUpper(strings.ReplaceAll(option["sslmode"], "-", "_")); mode {
	case "":
	case "DISABLED", "DISABLE":
		return "false", nil
	case "PREFERRED":
		return "preferred", nil
	case "REQUIRED", "TRUST":
		return "skip-verify", nil
	case "VERIFY_CA", "VERIFY_IDENTITY", "VERIFY_FULL":
		return "true", nil
	default:
		return "", badJDBC("sslMode DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY")
	}
	switch {
	case is("usessl", "false"):
		return "false", nil
	case is("verifyservercertificate", "true"):
		return "true", nil
	case is("usessl", "true"), is("requiressl", "true"):
		return "skip-verify", nil
	}
	return "preferred", nil
}

func badJDBC(want string) error {
	return &spi.PropError{Name: "leaf.jdbc.url", Want: want}
}
