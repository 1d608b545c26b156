package spec

import "go.yaml.in/yaml/v3"

// stateTables checks that one computation writes each table. Joiners only read, so they claim nothing.
func (v *validator) stateTables() {
	writer := map[string]string{}
	for _, c := range v.s.Computations {
		for _, m := range c.Value.Managers {
			at := to(c.Name, "external_state_managers", m.Name)
			table, ok := v.tablePath(&m.Value, at)
			if !ok {
				continue
			}
			if first, claimed := writer[table]; claimed {
				v.fault(at, "State table %s is claimed for writing by both %s and %s", table, first, c.Name)
				continue
			}
			writer[table] = c.Name
		}
	}
}

// tablePath is the path parameter of a state manager.
func (v *validator) tablePath(m *StateManager, at path) (string, bool) {
	_, n := member(&m.Parameters, "path")
	if n == nil || n.Kind != yaml.ScalarNode || n.Tag != "!!str" || n.Value == "" {
		v.fault(append(at, "parameters", "path"), "a state manager needs parameters.path, which names the table")
		return "", false
	}
	table, err := Resolve(n.Value)
	return table, err == nil
}
