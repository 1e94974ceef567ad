import { render } from "preact";
import { Console } from "./app/console.tsx";
import { watchLinks } from "./app/link.ts";
import { chosenTheme, showTheme } from "./app/theme.ts";
import { watchHistory } from "./state/leaving.ts";

showTheme(chosenTheme());
watchHistory();
watchLinks();
const root = document.getElementById("console");
if (!root) throw new Error("the page has no place for the console");
render(<Console />, root);
