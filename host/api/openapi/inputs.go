package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-tools/parley/internal/lazy"
	"github.com/parley-tools/parley/manifest"
)

// inputs are the parameters of a tool: what the operation has in its path, query, headers and body.
type inputs struct {
	binding  *manifest.Binding
	given    []input
	taken    map[string]bool // the names of given, in lower case
	required []string
	example  object
}

// input is a parameter: its name, and its schema in the document.
type input struct {
	name   string
	schema any
	about  string
}

// Bounds of one operation, which keep documents with references from taking time without end.
const (
	maxParams = 500  // in its path, query and headers: no manifest has more in a query
	maxFlat   = 1000 // properties of a body that are parameters
	maxPath   = 2000 // bytes
	maxParts  = 100  // parts of allOf in the body
)

var (
	inBraces   = lazy.Pattern(`\{([^{}]+)\}`)
	plainName  = lazy.Pattern(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	textual    = lazy.Pattern(`^text/|(xml|yaml|graphql|json)$`) // media types
	notInNames = lazy.Pattern(`[^A-Za-z0-9_.-]+`)
	mediaName  = lazy.Pattern(`^[a-z0-9.+/-]{3,100}$`)
	// ownHeader matches the headers that the host sets itself, and texts that cannot be names of headers.
	ownHeader = lazy.Pattern("(?i)^(accept(-encoding)?|connection|content-(type|length)|cookie|expect|host|" +
		"http2-settings|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|user-agent|.*[^a-z0-9!#$%&'*+.^_`|~-].*)$")
)

// add adds a parameter, under another name if its own is taken or cannot be typed. It returns the name.
func (in *inputs) add(place, wire string, schema any, about string, isRequired bool) string {
	name := wire
	if place == "header" {
		name = kebab(words(wire))
	} else if !plainName().MatchString(wire) || len(wire) > 100 {
		name = notInNames().ReplaceAllString(ascii(wire), "-")
		name = strings.TrimLeft(strings.Trim(name, "-"), ".-0123456789")
		if name = name[:min(len(name), 100)]; name == "" {
			name = "value"
		}
	}
	if in.taken[strings.ToLower(name)] {
		name = place + "-" + name
	}
	for stem, n := name, 2; in.taken[strings.ToLower(name)]; n++ {
		name = fmt.Sprintf("%s-%d", stem, n)
	}
	in.taken[strings.ToLower(name)] = true
	in.given = append(in.given, input{name, schema, about})
	if isRequired {
		in.required = append(in.required, name)
	}
	if name != wire && place != "path" {
		in.binding.As[name] = wire
	}
	return name
}

// params returns the schema of the parameters, nil if it has more bytes than there is room for.
func (in *inputs) params(d *deriver, depth, room int) json.RawMessage {
	s := d.schemas(d.texts, true, depth, room)
	props := object{}
	for _, i := range in.given {
		if s.room < 0 {
			return nil
		}
		m := object{"description": i.about}
		if to := d.resolve(i.schema); isPlain(to) {
			maps.Copy(m, to)
		} else {
			maps.Copy(m, members(i.schema))
		}
		props[i.name] = s.convert(m, 0, 0)
	}
	root := object{"type": "object", "properties": props, "additionalProperties": false}
	if len(in.required) > 0 {
		root["required"] = sorted(slices.Clone(in.required))
	}
	return s.finish(root)
}

// inputs returns the parameters and the request of an operation, or why no call can make it.
func (d *deriver) inputs(o *operation) (in *inputs, reason string) {
	path, _, _ := strings.Cut(o.path, "#") // a fragment sets apart operations with the same request
	fixed := inBraces().ReplaceAllString(path, "")
	in = &inputs{binding: &manifest.Binding{Method: o.method, Path: path, As: map[string]string{}},
		taken: map[string]bool{}, example: object{}}
	given := append(slices.Clone(list(o.item["parameters"])), list(o.fields["parameters"])...)
	switch {
	case o.method == "TRACE":
		return nil, "requests with this method are not sent"
	case strings.Contains(fixed, " ") || !strings.HasPrefix(path, "/") || len(path) > maxPath:
		return nil, fmt.Sprintf("its path has a space or over %d bytes, or does not begin with a slash", maxPath)
	case len(given) > maxParams:
		return nil, fmt.Sprintf("it has more than %d parameters", maxParams)
	}
	var order []string
	all := map[string]object{}
	for _, p := range given {
		m := d.resolve(p)
		if name := text(m["name"]); name == "" || len(name) > 500 {
			return nil, "one of its parameters has no name or one of over 500 bytes, or its reference leads nowhere"
		}
		key := text(m["in"]) + " " + text(m["name"])
		if all[key] == nil {
			order = append(order, key)
		}
		all[key] = m
	}
	for _, match := range inBraces().FindAllStringSubmatch(path, -1) {
		if key := "path " + match[1]; all[key] == nil { // the document does not describe it
			isText := object{"type": "string"}
			order, all[key] = append(order, key), object{"name": match[1], "in": "path", "type": "string", "schema": isText}
		}
	}
	form, needed, consumes := object{}, []any{}, list(o.fields["consumes"])
	if consumes == nil {
		consumes = list(d.root["consumes"])
	}
	for _, key := range order {
		m := all[key]
		switch text(m["in"]) {
		case "formData":
			if name := text(m["name"]); !d.isCredential(m) {
				if form[name] = listAsText(m, "multi"); isTrue(m["required"]) {
					needed = append(needed, name)
				}
			}
		case "body":
			content := object{}
			for _, media := range consumes {
				content[text(media)] = m
			}
			media, _ := bodyOf(content)
			d.addBody(in, cmp.Or(media, "application/json"), m["schema"], nil, isTrue(m["required"]))
		default:
			if reason := d.addParameter(in, m); reason != "" {
				return nil, reason
			}
		}
	}
	if len(form) > 0 {
		media := "application/x-www-form-urlencoded"
		if slices.Contains(consumes, any("multipart/form-data")) ||
			slices.ContainsFunc(slices.Collect(maps.Values(form)), func(v any) bool { return members(v)["type"] == "file" }) {
			media = "multipart/form-data"
		}
		d.addBody(in, media, object{"type": "object", "properties": form, "required": needed}, nil, true)
	}
	body := d.resolve(o.fields["requestBody"])
	if media, schema := bodyOf(body["content"]); media != "" {
		d.addBody(in, media, schema, members(body["content"])[media], isTrue(body["required"]))
	}
	return in, ""
}

// listAsText returns a parameter of Swagger 2. A list that is not written in one of some formats becomes a text, which
// the caller writes in the format.
func listAsText(m object, formats ...string) object {
	format := cmp.Or(text(m["collectionFormat"]), "csv")
	if text(m["type"]) != "array" || slices.Contains(formats, format) {
		return m
	}
	return object{"type": "string", "description": text(m["description"]) + " A list, as " + format + "."}
}

func (d *deriver) isCredential(m object) bool {
	name := strings.ToLower(text(m["name"]))
	return d.keys[name] || name == "token" && strings.Contains(strings.ToLower(text(m["description"])), "authenticat")
}

// addParameter adds a parameter of the path, the query or a header. A credential is left to the secrets.
func (d *deriver) addParameter(in *inputs, m object) (reason string) {
	wire, place := text(m["name"]), text(m["in"])
	isNeeded, schema := isTrue(m["required"]), m["schema"]
	if schema == nil && m["content"] != nil {
		schema = object{"type": "string", "description": "A JSON text."}
	} else if formats := strings.Fields(swaggerLists[place]); d.isSwagger {
		own := maps.Clone(listAsText(m, formats...))
		for _, key := range []string{"required", "name", "in"} {
			delete(own, key)
		}
		schema = own
	}
	switch {
	case place != "path" && d.isCredential(m), place == "header" && ownHeader().MatchString(wire),
		place == "path" && !strings.Contains(in.binding.Path, "{"+wire+"}"):
		return ""
	case !slices.Contains([]string{"path", "query", "header", "cookie"}, place):
		return "the parameter " + manifest.CleanLine(wire) + " is in " + manifest.CleanLine(place)
	}
	style, exploded := d.style(m, schema)
	name := in.add(place, wire, schema, text(m["description"]), isNeeded || place == "path")
	if place == "path" {
		operator := map[string]string{"label": ".", "matrix": ";"}[text(m["style"])]
		if operator == ";" && name != wire {
			in.binding.As[name] = wire
		}
		in.binding.Path = strings.ReplaceAll(in.binding.Path, "{"+wire+"}", "{"+operator+name+exploded+"}")
	} else {
		b := in.binding
		to := map[string]*[]manifest.Placed{"query": &b.Query, "header": &b.Header, "cookie": &b.Cookie}[place]
		isReserved := place == "query" && isTrue(m["allowReserved"])
		*to = append(*to, manifest.Placed{Name: name, Style: style, Reserved: isReserved})
	}
	if v, ok := d.exampleOf(m); ok {
		in.example[name] = v
	} else if v, ok := d.exampleOf(d.resolve(schema)); ok {
		in.example[name] = v
	}
	return ""
}

// swaggerLists are the formats of lists in Swagger 2 that requests can have, by the place of the parameter. In the
// query they are styles.
var (
	swaggerLists  = map[string]string{"query": "csv multi pipes ssv", "path": "csv", "header": "csv"}
	swaggerStyles = map[string]string{"": manifest.StyleComma, "csv": manifest.StyleComma, "ssv": manifest.StyleSpace,
		"pipes": manifest.StylePipe}
)

// style returns how a list or an object is written: the style in the query, a header or a cookie, "" for the usual one,
// and the asterisk of an exploded one in the path.
func (d *deriver) style(m object, schema any) (style, asterisk string) {
	kind, place, given := text(d.resolve(schema)["type"]), text(m["in"]), text(m["style"])
	exploded, isSaid := m["explode"].(bool)
	if isForm := place == "query" || place == "cookie"; !isSaid {
		exploded = isForm && (given == "" || given == "form")
	}
	switch {
	case kind == "string" || kind == "integer" || kind == "number" || kind == "boolean":
		return "", ""
	case place == "path" && exploded:
		return "", "*"
	case place == "header" && exploded && kind != "array":
		return manifest.StyleRepeat, ""
	case place == "path", place == "header":
		return "", ""
	case d.isSwagger:
		return swaggerStyles[text(m["collectionFormat"])], ""
	case given == "deepObject":
		return manifest.StyleDeep, ""
	case exploded:
		return "", ""
	}
	return cmp.Or(map[string]string{"spaceDelimited": manifest.StyleSpace, "pipeDelimited": manifest.StylePipe}[given],
		manifest.StyleComma), ""
}

// exampleOf returns the example that a parameter, a media type or a schema has.
func (d *deriver) exampleOf(m object) (any, bool) {
	if v, ok := m["example"]; ok {
		return v, true
	}
	if all := list(m["examples"]); len(all) > 0 {
		return all[0], true
	}
	all := members(m["examples"])
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if v, ok := d.resolve(all[name])["value"]; ok {
			return v, true
		}
	}
	return nil, false
}

func mediaKind(media string) string {
	kind, _, _ := strings.Cut(strings.ToLower(media), ";")
	return strings.TrimSpace(kind)
}

func isJSON(media string) bool {
	kind := mediaKind(media)
	return kind == "application/json" || kind == "*/*" || strings.HasSuffix(kind, "+json") || kind == "text/json"
}

// preferred are the media types that a body is written in if there is a choice. An object can be a merge patch, but no
// other patch.
var preferred = []string{"application/json", "*/*", "application/x-www-form-urlencoded", "multipart/form-data",
	"application/merge-patch+json"}

// bodyOf returns the media type that a body is written in, and its schema.
func bodyOf(content any) (media string, schema any) {
	all := members(content)
	rank := func(media string) int {
		if i := slices.Index(preferred, mediaKind(media)); i >= 0 {
			return i
		}
		if isJSON(media) {
			return len(preferred)
		}
		return len(preferred) + 1
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if media == "" || rank(name) < rank(media) {
			media, schema = name, members(all[name])["schema"]
		}
	}
	return media, schema
}

// addBody adds the body: its properties as parameters if it is an object, else as the parameter body.
func (d *deriver) addBody(in *inputs, media string, schema any, content any, isRequired bool) {
	kind := mediaKind(media)
	in.binding.Body = cmp.Or(map[string]string{"application/json": "json", "*/*": "json", "text/json": "json",
		"application/x-www-form-urlencoded": "form", "multipart/form-data": "multipart"}[kind], "raw:"+kind)
	parts := maxParts
	whole := d.merged(schema, &parts)
	isRaw := strings.HasPrefix(in.binding.Body, "raw:")
	value, hasExample := d.exampleOf(members(content))
	if !hasExample {
		value, hasExample = d.exampleOf(whole)
	}
	if isRaw || !isFlat(whole) {
		switch {
		case in.binding.Body == "form", in.binding.Body == "multipart":
			if schema == nil || len(whole) == 0 || text(whole["type"]) == "object" && len(members(whole["properties"])) == 0 {
				schema = object{"type": "object"}
			}
		case isRaw && !isJSON(kind):
			if schema = (object{"type": "string", "description": "The body, as " + kind + "."}); !textual().MatchString(kind) {
				schema = object{"type": "string", "contentEncoding": "base64", "contentMediaType": kind}
			}
		}
		in.binding.Whole = in.add("body", "body", schema, "", isRequired)
		delete(in.binding.As, in.binding.Whole)
		if hasExample {
			in.example[in.binding.Whole] = value
		}
		return
	}
	props, needed, encodings := members(whole["properties"]), map[string]bool{}, members(members(content)["encoding"])
	for _, name := range list(whole["required"]) {
		needed[text(name)] = isRequired
	}
	isList := func(v any) bool { return text(d.resolve(v)["type"]) == "array" }
	for _, name := range slices.Sorted(maps.Keys(props)) {
		to := d.resolve(props[name])
		if _, isHidden := manifest.FirstHidden(name, false); isHidden || isTrue(to["readOnly"]) ||
			d.isCredential(object{"name": name, "description": to["description"]}) && in.binding.Body == "form" {
			continue
		}
		given, encoding := props[name], members(encodings[name])
		if media := mediaKind(text(encoding["contentType"])); mediaName().MatchString(media) { // one type
			given = ofMedia(to, media, in.binding.Body)
		}
		style := text(encoding["style"])
		format := map[string]string{"": "csv", "form": "csv", "spaceDelimited": "ssv", "pipeDelimited": "pipes"}[style]
		isJoined := encoding["explode"] == false || encoding["explode"] == nil && format != "csv"
		if format != "" && isJoined && in.binding.Body == "form" && isList(to) {
			given = listAsText(object{"type": "array", "description": to["description"], "collectionFormat": format})
		}
		own := in.add("body", name, given, "", needed[name])
		isObject := bare(to)["type"] == "object" // a form writes it in this style anyway
		if style == "deepObject" && (isObject && in.binding.Body == "multipart" || isList(to) ||
			slices.ContainsFunc(list(to["anyOf"]), isList)) {
			in.binding.As[own] = name + "[]"
		}
		if v, ok := members(value)[name]; ok {
			in.example[own] = v
		} else if v, ok := d.exampleOf(to); ok && !hasExample {
			in.example[own] = v
		}
	}
}

// ofMedia returns the schema of a property of a form that is written in a media type. The caller writes what would be
// an object in one other than JSON.
func ofMedia(m object, media, body string) object {
	made, isOther := maps.Clone(m), !isJSON(media)
	switch items := members(m["items"]); {
	case isOther && body != "multipart":
		return m
	case isOther && items != nil:
		made["items"] = ofMedia(items, media, body)
		return made
	case isOther && (m["properties"] != nil || text(m["type"]) == "object"):
		made = object{"type": "string", "description": text(m["description"]) + " A text, as " + media + "."}
	}
	made["contentMediaType"] = media
	return made
}
