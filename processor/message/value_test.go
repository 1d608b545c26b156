package message

import (
	"math"
	"testing"
)

func TestValuesGiveBackWhatTheyWereMadeOf(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{0, -1, math.MinInt64, math.MaxInt64} {
		if Int64Value(n).Int64() != n || TimestampValue(n).Timestamp() != n {
			t.Errorf("%d is lost", n)
		}
	}
	if Uint64Value(math.MaxUint64).Uint64() != math.MaxUint64 || DoubleValue(-1.5).Double() != -1.5 {
		t.Error("a number is lost")
	}
	if !BooleanValue(true).Boolean() || BooleanValue(false).Boolean() {
		t.Error("a boolean is lost")
	}
	if StringValue("a").Str != "a" || BytesValue([]byte{0xff}).Str != "\xff" || BytesValue(nil).Str != "" || JSONValue("{}").Str != "{}" {
		t.Error("a text is lost")
	}
	if !NullValue().IsNull() || StringValue("").IsNull() || BytesValue(nil).IsNull() {
		t.Error("null is not told from empty")
	}
}

func TestEqualIsSameKindAndBits(t *testing.T) {
	t.Parallel()
	nan := DoubleValue(math.NaN())
	for _, v := range []Value{NullValue(), StringValue("a"), nan, Int64Value(1)} {
		if !Equal(v, v) {
			t.Errorf("%v does not equal itself", v)
		}
	}
	if Equal(Int64Value(1), Uint64Value(1)) || Equal(DoubleValue(0), DoubleValue(math.Copysign(0, -1))) || Equal(StringValue(""), NullValue()) {
		t.Error("different values are equal")
	}
}
