// Package protect guards the files and folders of a host: it is the one loader of the files that the host reads on its
// own, keeps the register of them, checks who owns a file or folder, and says which folders no grant may reach.
package protect
