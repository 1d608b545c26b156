package functions

import (
	"fmt"
	"math"
	"reflect"
	"time"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/kafka-processor/processor/processor/message"
)

// rowValue is a row as a CEL value.
type rowValue struct {
	schema *message.Schema
	row    message.Row
	name   string
}

// ConvertToNative is part of ref.Val.
func (r *rowValue) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a row cannot be converted to %v", t)
}

// ConvertToType is part of ref.Val.
func (r *rowValue) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return types.NewObjectType(r.name)
	}
	return types.NewErr("a row cannot be converted to %s", t.TypeName())
}

// Equal is part of ref.Val: rows are equal if all their columns are.
func (r *rowValue) Equal(other ref.Val) ref.Val {
	o, ok := other.(*rowValue)
	if !ok || o.schema != r.schema {
		return types.False
	}
	for i := range r.row {
		if e := types.Equal(toCEL(r.row[i]), toCEL(o.row[i])); e != types.True {
			return e
		}
	}
	return types.True
}

// Type is part of ref.Val.
func (r *rowValue) Type() ref.Type { return types.NewObjectType(r.name) }

// Value is part of ref.Val.
func (r *rowValue) Value() any { return r }

// Get is part of traits.Indexer, for a row whose type has been erased by dyn(..).
func (r *rowValue) Get(index ref.Val) ref.Val {
	name, ok := index.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(index)
	}
	i := r.schema.Index(string(name))
	if i < 0 {
		return types.NewErr("no column %s", string(name))
	}
	return toCEL(r.row[i])
}

// IsSet is part of traits.FieldTester.
func (r *rowValue) IsSet(field ref.Val) ref.Val {
	name, ok := field.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(field)
	}
	i := r.schema.Index(string(name))
	if i < 0 {
		return types.NewErr("no column %s", string(name))
	}
	return types.Bool(r.row[i].Kind != message.Null)
}

// toCEL is a cell as a CEL value; a JSON document that cannot be parsed is a CEL error.
func toCEL(v message.Value) ref.Val {
	switch v.Kind {
	case message.String:
		if !utf8.ValidString(v.Str) {
			return types.WrapErr(errNotText)
		}
		return types.String(v.Str)
	case message.Int64:
		return types.Int(int64(v.Num))
	case message.Uint64:
		return types.Uint(v.Num)
	case message.Double:
		return types.Double(math.Float64frombits(v.Num))
	case message.Boolean:
		return types.Bool(v.Num != 0)
	case message.Timestamp:
		return types.Timestamp{Time: time.UnixMicro(int64(v.Num)).UTC()}
	case message.JSON:
		return parseJSON(v.Str)
	}
	return types.NullValue
}

// fromCEL is the cell of a CEL value; ok is false for values that only a JSON column can hold.
func fromCEL(v ref.Val) (cell message.Value, ok bool) {
	switch v := v.(type) {
	case types.Null:
		return message.Value{}, true
	case types.String:
		return message.Value{Kind: message.String, Str: string(v)}, true
	case types.Bytes:
		return message.Value{Kind: message.String, Str: string(v)}, true
	case types.Int:
		return message.Value{Kind: message.Int64, Num: uint64(v)}, true
	case types.Uint:
		return message.Value{Kind: message.Uint64, Num: uint64(v)}, true
	case types.Double:
		return message.DoubleValue(float64(v)), true
	case types.Bool:
		return message.BooleanValue(bool(v)), true
	case types.Timestamp:
		return message.TimestampValue(v.UnixMicro()), true
	}
	return message.Value{}, false
}
