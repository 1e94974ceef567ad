/**
 * Whether this is the compiled program, whose modules are in Bun's own file system. `main`: its entry, as a module
 * sees it.
 */
export function isCompiled({ pathname }: URL): boolean {
  return pathname.startsWith("/$bunfs/") || pathname.includes("/~BUN/");
}
