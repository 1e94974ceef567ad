/** What one check has found. Contains no secrets. */
export interface Finding {
  /** What was checked, such as `disk`. Several findings may have the same name. */
  readonly check: string;
  readonly status: "ok" | "warn" | "fail";
  readonly message: string;
  /** What to do. Every `warn` and `fail` has one. */
  readonly hint?: string;
}

export function ok(check: string, message: string): Finding {
  return { check, status: "ok", message };
}

export function warn(check: string, message: string, hint: string): Finding {
  return { check, status: "warn", message, hint };
}

export function fail(check: string, message: string, hint: string): Finding {
  return { check, status: "fail", message, hint };
}

/** The worst of the findings. */
export function statusOf(findings: readonly Finding[]): Finding["status"] {
  const has = (status: Finding["status"]) => findings.some((finding) => finding.status === status);
  return has("fail") ? "fail" : has("warn") ? "warn" : "ok";
}

const UNITS = ["B", "kB", "MB", "GB", "TB"] as const;

/** For people, with one decimal place: `1.5 GB`. */
export function bytesText(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  const value = bytes / 1_000 ** power;
  return `${power === 0 ? value : value.toFixed(1)} ${UNITS[power]}`;
}
