package service

import (
	"context"
	"errors"
	"time"

	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet"
	"github.com/parley-tools/parley/cmd/parleyd/internal/fleet/records"
	"github.com/parley-tools/parley/host"
)

// recordTime is how long a call that requires its records in the stream waits for each record, so that a restart of
// the server fails no call.
const recordTime = 5 * time.Second

// copyRecords copies the records of calls to the stream of the fleet until the service ends.
func (s *Service) copyRecords(cfg fleet.Config) error {
	copier, err := records.New(s.front.Conn(), cfg.Name, s.parley.AuditLog(), s.log)
	if err != nil {
		return err
	}
	if cfg.Records == fleet.RecordsRequired {
		note, err := records.CheckDurable(context.Background(), s.front.Conn(), cfg.Monitor)
		switch {
		case errors.Is(err, host.Unavailable): // the server may be unavailable at the start
			s.log.Warn("how the server keeps records is not known", "error", err)
		case err != nil:
			return err
		case note != "":
			s.log.Warn(note)
		}
		copier.Require(recordTime)
	}
	s.telemetry.Gauge("parley_records_behind", "Records of calls that are not in the stream of the fleet yet.",
		copier.Behind)
	ctx, stop := context.WithCancel(context.Background())
	s.stopRecords = stop
	go copier.Run(ctx)
	return nil
}
