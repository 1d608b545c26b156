package message

import "errors"

var (
	errTime      = errors.New("not a time of RFC 3339")
	errTimeRange = errors.New("a time outside of the years 0 to 9999; numbers are milliseconds since 1970")
)

const (
	daySeconds = 86400
	minTime    = -62167219200 * 1e6         // 0000-01-01T00:00:00Z
	maxTime    = 253402300799*1e6 + 999_999 // 9999-12-31T23:59:59.999999Z
)

// AppendTimestamp appends microseconds since 1970 as RFC 3339 in UTC, with the digits of the fraction that it needs and no more.
// A time outside of the years 0 to 9999, which that form cannot write, is an error.
func AppendTimestamp(dst []byte, micros int64) ([]byte, error) {
	if micros < minTime || micros > maxTime {
		return dst, errTimeRange
	}
	micros -= minTime // from here on nothing is negative
	seconds, fraction := micros/1e6, int(micros%1e6)
	year, month, day := civil(seconds / daySeconds)
	second := int(seconds % daySeconds)
	dst = append(dst,
		digit(year/1000), digit(year/100), digit(year/10), digit(year), '-', digit(month/10), digit(month), '-', digit(day/10), digit(day), 'T',
		digit(second/36000), digit(second/3600%10), ':', digit(second/600%6), digit(second/60), ':', digit(second%60/10), digit(second%60))
	if fraction != 0 {
		dst = append(dst, '.', digit(fraction/100000), digit(fraction/10000), digit(fraction/1000), digit(fraction/100), digit(fraction/10), digit(fraction))
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return append(dst, 'Z'), nil
}

// digit is the last decimal digit of n.
func digit(n int) byte { return '0' + byte(n%10) }

// eraStart is the number of days from -0400-03-01, where a cycle of 400 years begins, to 0000-01-01.
const eraStart = 146097 - 60

// civil is the date of a day counted from 0000-01-01, by H. Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin
// in March, so that the leap day is the last.
func civil(days int64) (year, month, day int) {
	days += eraStart
	era := days / 146097
	of := days % 146097
	yearOf := (of - of/1460 + of/36524 - of/146096) / 365
	dayOf := of - (365*yearOf + yearOf/4 - yearOf/100)
	shifted := (5*dayOf + 2) / 153
	day = int(dayOf-(153*shifted+2)/5) + 1
	year = int(yearOf+era*400) - 400
	month = int(shifted) + 3
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}

// dayNumber is the inverse of civil.
func dayNumber(year, month, day int) int64 {
	if month <= 2 {
		month += 12
		year--
	}
	year += 400
	dayOf := (153*(month-3)+2)/5 + day - 1
	return int64(year/400*146097+year%400*365+year%400/4-year%400/100+dayOf) - eraStart
}

// ParseTimestamp reads a time of RFC 3339, such as 2026-01-31T23:59:59.25+01:00, as microseconds since 1970, UTC. Further digits of the
// fraction are dropped. Leap seconds, which no such count can hold, lower-case letters and times that lie outside of the years
// 0 to 9999 in UTC are errors.
func ParseTimestamp(s string) (micros int64, err error) {
	if len(s) < len("2006-01-02T15:04:05Z") || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return 0, errTime
	}
	year := two(s, 0)*100 + two(s, 2)
	month, day, hour, minute, second := two(s, 5), two(s, 8), two(s, 11), two(s, 14), two(s, 17)
	if two(s, 0) < 0 || two(s, 2) < 0 || month < 1 || month > 12 || day < 1 || day > monthDays(year, month) ||
		hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 {
		return 0, errTime
	}
	fraction, zone, ok := cutFraction(s[19:])
	if !ok {
		return 0, errTime
	}
	offset, ok := zoneSeconds(zone)
	if !ok {
		return 0, errTime
	}
	seconds := dayNumber(year, month, day)*daySeconds + int64(hour*3600+minute*60+second) - offset
	micros = seconds*1e6 + fraction + minTime
	if micros < minTime || micros > maxTime {
		return 0, errTimeRange
	}
	return micros, nil
}

// two is the number of two digits at i, below zero if they do not stand there.
func two(s string, i int) int {
	tens, ones := s[i]-'0', s[i+1]-'0'
	if tens > 9 || ones > 9 {
		return -1
	}
	return int(tens)*10 + int(ones)
}

func monthDays(year, month int) int {
	switch month {
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// cutFraction reads an optional fraction as microseconds; zone is what follows.
func cutFraction(s string) (micros int64, zone string, ok bool) {
	if s[0] != '.' {
		return 0, s, true
	}
	i, unit := 1, int64(100_000)
	for ; i < len(s) && s[i]-'0' <= 9; i++ {
		micros += int64(s[i]-'0') * unit
		unit /= 10
	}
	return micros, s[i:], i > 1
}

// zoneSeconds reads Z, +hh:mm or -hh:mm as seconds to the east of UTC.
func zoneSeconds(s string) (int64, bool) {
	if s == "Z" {
		return 0, true
	}
	if len(s) != 6 || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	hours, minutes := two(s, 1), two(s, 4)
	if hours < 0 || hours > 23 || minutes < 0 || minutes > 59 {
		return 0, false
	}
	seconds := int64(hours*3600 + minutes*60)
	if s[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}
