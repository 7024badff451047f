package groovy

import (
	"cmp"
	"math"
	"slices"
)

func doubles(sign token, a, b Value) (Value, error) {
	x, y := a.float(), b.float()
	switch sign {
	case plus:
		return OfDouble(x + y), nil
	case minus:
		return OfDouble(x - y), nil
	case times:
		return OfDouble(x * y), nil
	case slash:
		return OfDouble(x / y), nil
	case percent:
		return OfDouble(math.Mod(x, y)), nil
	}
	return Value{}, noOperator(sign, a, b)
}

func compareInts(a, b int64) int { return cmp.Compare(a, b) }

func compareNumbers(a, b Value) (int, error) {
	if a.class == Double || b.class == Double {
		return cmp.Compare(a.float(), b.float()), nil
	}
	difference, err := decimals(minus, a, b)
	if err != nil {
		return 0, err
	}
	return difference.big().Sign(), nil
}

func compareTexts(a, b string) int {
	if isASCII(a) && isASCII(b) {
		return cmp.Compare(a, b)
	}
	return slices.Compare(units(a), units(b))
}
