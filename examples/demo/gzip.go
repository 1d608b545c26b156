package main

import (
	"compress/gzip"
	"errors"
	"os"
)

// gzipFile is an opened .gz file.
type gzipFile struct {
	*gzip.Reader
	file *os.File
}

func openGzip(path string) (*gzipFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &gzipFile{z, f}, nil
}

func (g *gzipFile) Close() error { return errors.Join(g.Reader.Close(), g.file.Close()) }
