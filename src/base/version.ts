import { version } from "../../package.json";

/** Set by `scripts/build` with `--define`. Undefined when running from source. */
declare const GATEHOUSE_COMMIT: string | undefined;

/** The version in package.json, such as `0.1.0`. The build copies it into the program. */
export const VERSION: string = version;

/**
 * The commit that was built: 12 hexadecimal digits, followed by `-dirty` if files differed from it. Null when running
 * from source.
 */
export const COMMIT: string | null = typeof GATEHOUSE_COMMIT === "undefined" ? null : GATEHOUSE_COMMIT;
