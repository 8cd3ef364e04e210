package command

// ConfigData are all settings and folders.
type ConfigData struct {
	Settings []SettingValue `json:"settings"`
	Paths    []NamedPath    `json:"paths"`
}

// Config returns each setting with its value and its source, and the folders of the host.
func Config(d *Deps) (*ConfigData, error) {
	s, err := d.Settings()
	if err != nil {
		return nil, err
	}
	return &ConfigData{s.Values, d.Folders()}, nil
}
