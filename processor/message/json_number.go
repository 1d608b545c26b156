package message

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
)

var (
	errNotInteger = errors.New("not an integer")
	errIntRange   = errors.New("an integer is out of the column's range")
	errFloatRange = errors.New("a number is out of the range of doubles")
	errFloat      = errors.New("NaN and infinity have no form in JSON")
)

// exponentLimit is where exponents are cut off: beyond what any document's digits could make up for.
const exponentLimit = 1 << 40

// decimal is a JSON number: the digits of whole and fraction, times ten to the power of exponent, less the fraction's length.
type decimal struct {
	whole, fraction []byte
	exponent        int64
	negative        bool
}

// scanDecimal reads the number at i.
func scanDecimal(b []byte, i int) (d decimal, end int, err error) {
	if i < len(b) && b[i] == '-' {
		d.negative = true
		i++
	}
	end = skipDigits(b, i)
	d.whole = b[i:end]
	if len(d.whole) == 0 {
		return d, end, missingDigit(b, end)
	}
	if len(d.whole) > 1 && b[i] == '0' {
		return d, i + 1, errJSONSyntax
	}
	if end < len(b) && b[end] == '.' {
		i = end + 1
		end = skipDigits(b, i)
		d.fraction = b[i:end]
		if i == end {
			return d, end, missingDigit(b, end)
		}
	}
	if end < len(b) && b[end]|0x20 == 'e' {
		d.exponent, end, err = scanExponent(b, end+1)
	}
	return d, end, err
}

func scanExponent(b []byte, i int) (exponent int64, end int, err error) {
	negative := i < len(b) && b[i] == '-'
	if negative || i < len(b) && b[i] == '+' {
		i++
	}
	end = skipDigits(b, i)
	if i == end {
		return 0, end, missingDigit(b, end)
	}
	for _, c := range b[i:end] {
		exponent = min(exponent*10+int64(c-'0'), exponentLimit)
	}
	if negative {
		exponent = -exponent
	}
	return exponent, end, nil
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

func missingDigit(b []byte, i int) error {
	if i == len(b) {
		return errJSONEnd
	}
	return errJSONSyntax
}

// scanInteger reads the number at i as sign and magnitude, exactly: 1.0 and 1e3 are integers, 1.5 is not.
func scanInteger(b []byte, i int) (negative bool, magnitude uint64, end int, err error) {
	start := i
	if i < len(b) && b[i] == '-' {
		negative = true
		i++
	}
	first := i
	for i < len(b) && b[i]-'0' <= 9 {
		magnitude = magnitude*10 + uint64(b[i]-'0')
		i++
	}
	// Nineteen digits always fit. A zero may lead only when it is alone, and a fraction or exponent takes the long way.
	if n := i - first; n > 0 && n <= 19 && (n == 1 || b[first] != '0') && (i == len(b) || b[i] != '.' && b[i]|0x20 != 'e') {
		return negative, magnitude, i, nil
	}
	d, end, err := scanDecimal(b, start)
	if err != nil {
		return false, 0, end, err
	}
	if magnitude, err = d.magnitude(); err != nil {
		return false, 0, start, err
	}
	return d.negative, magnitude, end, nil
}

// magnitude is the number without its sign, if that is an integer below 2^64.
func (d decimal) magnitude() (uint64, error) {
	whole, fraction := d.whole, d.fraction
	for len(fraction) > 0 && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	scale := d.exponent - int64(len(fraction)) // of the last digit that is left
	if len(fraction) == 0 {
		for len(whole) > 0 && whole[len(whole)-1] == '0' {
			whole = whole[:len(whole)-1]
			scale++
		}
	}
	if len(whole) == 0 {
		return 0, nil // only zeros
	}
	m, fits := uint64(0), true
	for _, digits := range [2][]byte{whole, fraction} {
		for _, c := range digits {
			fits = fits && timesTen(&m, uint64(c-'0'))
		}
	}
	if scale < 0 {
		return 0, errNotInteger
	}
	for ; fits && scale > 0; scale-- {
		fits = timesTen(&m, 0)
	}
	if !fits {
		return 0, errIntRange
	}
	return m, nil
}

// timesTen makes m ten times m plus a digit; false says that the result does not fit.
func timesTen(m *uint64, digit uint64) bool {
	high, low := bits.Mul64(*m, 10)
	sum, carry := bits.Add64(low, digit, 0)
	*m = sum
	return high == 0 && carry == 0
}

// signed and unsigned give sign and magnitude as the bits of a Value of the kind.
func signed(negative bool, magnitude uint64) (uint64, error) {
	switch {
	case negative && magnitude <= 1<<63:
		return -magnitude, nil
	case !negative && magnitude < 1<<63:
		return magnitude, nil
	}
	return 0, errIntRange
}

func unsigned(negative bool, magnitude uint64) (uint64, error) {
	if negative && magnitude != 0 {
		return 0, errIntRange
	}
	return magnitude, nil
}

// exactPowers are the powers of ten that a double holds exactly.
var exactPowers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// scanDouble reads the number at i, rounded to the nearest double.
func scanDouble(b []byte, i int) (f float64, end int, err error) {
	d, end, err := scanDecimal(b, i)
	if err != nil {
		return 0, end, err
	}
	if f, ok := d.exact(); ok {
		return f, end, nil
	}
	f, err = strconv.ParseFloat(stringOf(b[i:end]), 64)
	if err != nil {
		return 0, i, errFloatRange
	}
	return f, end, nil
}

// exact is the number if digits and power of ten are doubles, so that one operation rounds it right (Clinger 1990).
func (d decimal) exact() (float64, bool) {
	power := d.exponent - int64(len(d.fraction))
	if len(d.whole)+len(d.fraction) > 15 || power < -22 || power > 22 {
		return 0, false
	}
	m := uint64(0)
	for _, c := range d.whole {
		m = m*10 + uint64(c-'0')
	}
	for _, c := range d.fraction {
		m = m*10 + uint64(c-'0')
	}
	f := float64(m)
	if power < 0 {
		f /= exactPowers[-power]
	} else {
		f *= exactPowers[power]
	}
	if d.negative {
		f = -f
	}
	return f, true
}

// appendDouble appends the shortest number that reads back as f, in the form of ECMAScript and encoding/json.
func appendDouble(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, errFloat
	}
	form := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		form = 'e'
	}
	dst = strconv.AppendFloat(dst, f, form, -1, 64)
	if n := len(dst); form == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1] // e-09 is e-9
		dst = dst[:n-1]
	}
	return dst, nil
}
