/** Whether this is the compiled program, whose modules are in a file system of Bun's own. `main`: its entry, as a module sees it. */
export function isCompiled({ pathname }: URL): boolean {
  return pathname.startsWith("/$bunfs/") || pathname.includes("/~BUN/");
}
