package sqltoken

import "database/sql/driver"

// PlainValue converts a value as database/sql converts an argument: integers become int64, or uint64 if
// they are larger, and a [driver.Valuer] becomes its value. One that only the underlying driver can
// convert stays unchanged. A nil []byte becomes nil.
func PlainValue(value any) any {
	switch v := value.(type) {
	case int64, string, uint64:
		return value
	case uint:
		return uint64(v)
	}
	if v, err := driver.DefaultParameterConverter.ConvertValue(value); err == nil {
		value = v
	}
	if text, ok := value.([]byte); ok && text == nil {
		return nil
	}
	return value
}
