/** The prompt of tasks that only keep the server busy. */
export const BACKGROUND = "Go on talking.";
/** The tool that never answers. */
export const WAITING_TOOL = "wait";
