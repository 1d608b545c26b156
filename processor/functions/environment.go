package functions

import (
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
	"cel.dev/cel-go/interpreter"

	"github.com/kafka-processor/processor/processor/message"
)

// Scope is what an expression may refer to: the columns of the row, those of the key, and the stream's name.
type Scope struct {
	Stream string
	Row    *message.Schema
	Key    *message.Schema // nil: there is no variable key
}

// Names of the CEL types of the variables row and key.
const (
	rowTypeName = "processor.Row"
	keyTypeName = "processor.Key"
)

// environment is a Scope in CEL's terms. item is the type of the variable item, nil without one.
type environment struct {
	Scope
	cel  *cel.Env
	item *cel.Type
}

func newEnvironment(scope Scope) (*environment, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, fmt.Errorf("set up expressions: %w", err)
	}
	options := []cel.EnvOption{
		cel.CustomTypeProvider(&rowTypes{Registry: registry, scope: scope}),
		cel.CustomTypeAdapter(registry),
		cel.EnableIdentifierEscapeSyntax(),
		ext.Strings(),
		cel.Variable("row", cel.ObjectType(rowTypeName)),
		cel.Variable("timestamp", cel.TimestampType),
		cel.Variable("stream", cel.StringType),
	}
	if scope.Key != nil {
		options = append(options, cel.Variable("key", cel.ObjectType(keyTypeName)))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, fmt.Errorf("set up expressions: %w", err)
	}
	return &environment{Scope: scope, cel: env}, nil
}

// withItem adds the variable item of type t.
func (e *environment) withItem(t *cel.Type) (*environment, error) {
	env, err := e.cel.Extend(cel.Variable("item", t))
	if err != nil {
		return nil, fmt.Errorf("set up expressions with item: %w", err)
	}
	return &environment{Scope: e.Scope, cel: env, item: t}, nil
}

// columns are those of variable; ok is false if it is neither row nor key.
func (e *environment) columns(variable string) (schema *message.Schema, ok bool) {
	switch {
	case variable == "row":
		return e.Row, true
	case variable == "key" && e.Key != nil:
		return e.Key, true
	}
	return nil, false
}

// celType is the static type of a column. A column that may be null has CEL's wrapper type, which null can be compared with.
func celType(c message.Column) *cel.Type {
	var t *cel.Type
	switch c.Kind {
	case message.String:
		t = cel.StringType
	case message.Int64:
		t = cel.IntType
	case message.Uint64:
		t = cel.UintType
	case message.Double:
		t = cel.DoubleType
	case message.Boolean:
		t = cel.BoolType
	case message.Timestamp:
		t = cel.TimestampType
	default:
		return cel.DynType
	}
	if c.Required {
		return t
	}
	return cel.NullableType(t)
}

// rowTypes gives the types of row and key to the checker and the interpreter.
type rowTypes struct {
	*types.Registry
	scope Scope
}

func (t *rowTypes) schema(name string) *message.Schema {
	switch name {
	case rowTypeName:
		return t.scope.Row
	case keyTypeName:
		return t.scope.Key
	}
	return nil
}

// FindStructType is part of types.Provider.
func (t *rowTypes) FindStructType(name string) (*types.Type, bool) {
	if t.schema(name) != nil {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return t.Registry.FindStructType(name)
}

// FindStructFieldNames is part of types.Provider.
func (t *rowTypes) FindStructFieldNames(name string) ([]string, bool) {
	s := t.schema(name)
	if s == nil {
		return t.Registry.FindStructFieldNames(name)
	}
	return columnNames(s), true
}

// FindStructFieldType is part of types.Provider.
func (t *rowTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	s := t.schema(name)
	if s == nil {
		return t.Registry.FindStructFieldType(name, field)
	}
	i := s.Index(field)
	if i < 0 {
		return nil, false
	}
	return &types.FieldType{
		Type: celType(s.Columns[i]),
		IsSet: func(target any) bool {
			r, ok := target.(*rowValue)
			return ok && r.row[i].Kind != message.Null
		},
		GetFrom: func(target any) (any, error) {
			r, ok := target.(*rowValue)
			if !ok {
				return nil, fmt.Errorf("%T is not a row", target)
			}
			v := toCEL(r.row[i])
			if e, bad := v.(*types.Err); bad {
				return nil, e
			}
			return v, nil
		},
	}, true
}

// NewValue is part of types.Provider. Rows cannot be made in an expression.
func (t *rowTypes) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if t.schema(name) != nil {
		return types.NewErr("a value of type %s cannot be made in an expression", name)
	}
	return t.Registry.NewValue(name, fields)
}

// Frame is what expressions read while one message is processed, and the memory of the strings that they make. It belongs to one
// goroutine; Begin and release end the life of all strings made before.
type Frame struct {
	scope     *Scope // that of the last Begin
	row, key  rowValue
	stream    string
	eventTime int64
	item      message.Value
	itemCEL   ref.Val // item where it is no plain value, else nil
	arena     []byte
}

// arenaLimit is the largest arena, in bytes, that is kept from one message to the next.
const arenaLimit = 1 << 20

// Begin sets the message.
func (f *Frame) Begin(m *Message, scope *Scope) {
	if f.scope != scope {
		f.scope, f.stream = scope, scope.Stream
		f.row = rowValue{schema: scope.Row, name: rowTypeName}
		f.key = rowValue{schema: scope.Key, name: keyTypeName}
	}
	f.row.row, f.key.row = m.Row, m.KeyRow
	f.eventTime = m.EventTime
	f.clearItem()
	f.release(0)
}

func (f *Frame) clearItem() { f.item, f.itemCEL = message.Value{}, nil }

// mark is how much of the arena is in use.
func (f *Frame) mark() int { return len(f.arena) }

// release gives back all strings made since mark.
func (f *Frame) release(mark int) {
	if cap(f.arena) > arenaLimit && mark == 0 {
		f.arena = nil
		return
	}
	f.arena = f.arena[:mark]
}

// ResolveName is part of interpreter.Activation.
func (f *Frame) ResolveName(name string) (any, bool) {
	switch name {
	case "row":
		return &f.row, true
	case "key":
		return &f.key, f.key.schema != nil
	case "timestamp":
		return toCEL(message.TimestampValue(f.eventTime)), true
	case "stream":
		return types.String(f.stream), true
	case "item":
		if f.itemCEL != nil {
			return f.itemCEL, true
		}
		return toCEL(f.item), true
	}
	return nil, false
}

// Parent is part of interpreter.Activation.
func (f *Frame) Parent() interpreter.Activation { return nil }
