package world

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// memTree is a tree of files in memory, below one folder.
type memTree struct {
	root     *MemNode
	nodes    int
	maxNodes int
}

// errTreeFull means that a tree has reached its limit of files and folders.
var errTreeFull = errors.New("too many files")

// MemNode is a file or a folder of a tree in memory.
type MemNode struct {
	ino      uint64
	Dir      bool
	ReadOnly bool // a file that cannot be written
	Data     []byte
	Children map[string]*MemNode
	Names    []string // the sorted names of the children, if they no longer change
}

func newFolder() *MemNode { return &MemNode{Dir: true, Children: map[string]*MemNode{}} }

func newMemTree(maxNodes int) memTree {
	t := memTree{root: newFolder(), nodes: 1, maxNodes: maxNodes}
	t.root.ino = 1
	return t
}

func (t *memTree) add(parent *MemNode, name string, n *MemNode) error {
	if t.nodes++; t.nodes > t.maxNodes {
		return errTreeFull
	}
	n.ino = uint64(t.nodes)
	parent.Children[name] = n
	return nil
}

// addFolder returns the folder at a path, and creates it if necessary.
func (t *memTree) addFolder(parts []string) (*MemNode, error) {
	node := t.root
	for i, part := range parts {
		next := node.Children[part]
		if next == nil {
			next = newFolder()
			if err := t.add(node, part, next); err != nil {
				return nil, err
			}
		}
		if !next.Dir {
			return nil, fmt.Errorf("%q is both a file and a folder", path.Join(parts[:i+1]...))
		}
		node = next
	}
	return node, nil
}

// addFile adds a file that cannot be written, and the folders that lead to it.
func (t *memTree) addFile(parts []string, data []byte) error {
	if len(parts) == 0 {
		return errors.New("a file has no name")
	}
	parent, err := t.addFolder(parts[:len(parts)-1])
	if err != nil {
		return err
	}
	name := parts[len(parts)-1]
	if parent.Children[name] != nil {
		return fmt.Errorf("%q is there twice", path.Join(parts...))
	}
	return t.add(parent, name, &MemNode{Data: data, ReadOnly: true})
}

// sortNames stores the sorted names in all folders. Afterwards the folders must not change.
func (n *MemNode) sortNames() {
	n.Names = slices.Sorted(maps.Keys(n.Children))
	for _, child := range n.Children {
		if child.Dir {
			child.sortNames()
		}
	}
}

func splitPath(name string) []string {
	return slices.DeleteFunc(strings.Split(path.Clean("/"+name), "/"), func(s string) bool { return s == "" })
}

// find returns the file or folder at a path, or nil.
func (t *memTree) find(name string) *MemNode {
	node := t.root
	for _, part := range splitPath(name) {
		if node == nil || !node.Dir {
			return nil
		}
		node = node.Children[part]
	}
	return node
}

// parent returns the folder that contains name, or nil if there is none, and the last element of name.
func (t *memTree) parent(name string) (*MemNode, string) {
	p := splitPath(name)
	if len(p) == 0 {
		return nil, ""
	}
	dir := t.find(strings.Join(p[:len(p)-1], "/"))
	if dir == nil || !dir.Dir {
		return nil, ""
	}
	return dir, p[len(p)-1]
}
