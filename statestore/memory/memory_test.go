package memory

import (
	"testing"

	"github.com/kafka-processor/processor/statestore"
	"github.com/kafka-processor/processor/statestore/storetest"
)

// ground opens stores on one Disk.
type ground struct{ disk *Disk }

func (g ground) Open() (statestore.Store, error) {
	s, err := g.disk.Open()
	if err != nil {
		return nil, err // not a typed nil
	}
	return s, nil
}

func (g ground) Crash() error {
	g.disk.Crash()
	return nil
}

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Opener { return ground{NewDisk()} })
}
