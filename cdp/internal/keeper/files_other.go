//go:build !unix

package keeper

import "os"

func openLock(string) (*os.File, error) { return nil, errUnsupported }

func flock(*os.File) error { return errUnsupported }

func sameFile(*os.File, string) bool { return false }

func ensurePrivateDir(string) error { return errUnsupported }

func checkSocket(string) error { return errUnsupported }
