import * as M from "@mui/material";
import {AdapterDayjs} from "@mui/x-date-pickers/AdapterDayjs";
import {DatePicker} from "@mui/x-date-pickers/DatePicker";
import {LocalizationProvider} from "@mui/x-date-pickers/LocalizationProvider";
import {useState} from "react";
import {always, checked, show} from "./react.jsx";

const second = (event, value) => value;

show(({set, kept}) => {
	const [anchor, setAnchor] = useState(null), [open, setOpen] = useState(false);
	return <>
		<M.FormControlLabel label="News" control={<M.Checkbox onChange={set("checkbox", checked)}/>}/>
		<M.RadioGroup onChange={set("radio", second)}>
			<M.FormControlLabel value="a" control={<M.Radio/>} label="Plan A"/>
			<M.FormControlLabel value="b" control={<M.Radio/>} label="Plan B"/>
		</M.RadioGroup>
		<M.ToggleButtonGroup exclusive value={kept.buttons} onChange={set("buttons", second)}>
			<M.ToggleButton value="day">Day</M.ToggleButton><M.ToggleButton value="week">Week</M.ToggleButton>
		</M.ToggleButtonGroup>
		<M.FormControlLabel label="Wifi" control={<M.Switch onChange={set("switch", checked)}/>}/>
		<M.FormControl fullWidth><M.InputLabel id="country">Country</M.InputLabel>
			<M.Select labelId="country" label="Country" value={kept.select ?? ""} onChange={set("select", (e) => e.target.value)}>
				<M.MenuItem value="no">Norway</M.MenuItem><M.MenuItem value="se">Sweden</M.MenuItem>
			</M.Select>
		</M.FormControl>
		<M.Autocomplete options={["Apple", "Banana", "Cherry"]} onChange={set("combobox", second)}
			renderInput={(props) => <M.TextField {...props} label="Fruit"/>}/>
		<LocalizationProvider dateAdapter={AdapterDayjs}>
			<DatePicker label="Due" onChange={set("date", (date) => date?.isValid() ? date.format("YYYY-MM-DD") : null)}/>
		</LocalizationProvider>
		<M.Button onClick={(e) => setAnchor(e.currentTarget)}>Actions</M.Button>
		<M.Menu anchorEl={anchor} open={Boolean(anchor)} onClose={() => setAnchor(null)}>
			<M.MenuItem onClick={() => { set("menu", always)(); setAnchor(null); }}>Archive</M.MenuItem>
		</M.Menu>
		<M.Button onClick={() => setOpen(true)}>Delete</M.Button>
		<M.Dialog open={open} onClose={() => setOpen(false)}><M.DialogTitle>Sure?</M.DialogTitle>
			<M.Button onClick={() => { set("dialog", always)(); setOpen(false); }}>Yes</M.Button></M.Dialog>
		<M.Tabs value={kept.tabs ?? "One"} onChange={set("tabs", second)}>
			<M.Tab value="One" label="One"/><M.Tab value="Two" label="Two"/>
		</M.Tabs>
		<M.Slider aria-label="Volume" defaultValue={30} onChange={set("slider", second)}/>
		<M.Rating name="stars" onChange={set("rating", second)}/>
		<M.Button component="label" variant="contained">Upload file
			<input type="file" hidden onChange={set("upload", (e) => e.target.files.length)}/></M.Button>
		<M.Tooltip title="Helpful text"><M.IconButton aria-label="Info">i</M.IconButton></M.Tooltip>
		<M.Accordion onChange={set("accordion", second)}><M.AccordionSummary>More</M.AccordionSummary>
			<M.AccordionDetails>Details</M.AccordionDetails></M.Accordion>
		<M.Table><M.TableHead><M.TableRow><M.TableCell>
			<M.TableSortLabel onClick={set("sort", always)} active={kept.sort}>Price</M.TableSortLabel>
		</M.TableCell></M.TableRow></M.TableHead></M.Table>
	</>;
});
