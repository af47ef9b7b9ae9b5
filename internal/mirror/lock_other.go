//go:build !unix

package mirror

import "errors"

func lock(string) (func(), error) {
	return nil, errors.New("this system cannot lock a folder; keep the jobs in PostgreSQL (queue.url)")
}
