const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdg(?:e|A|iOS)?\/(\d+)/, "Edge"],
  [/\bOPR\/(\d+)/, "Opera"],
  [/\b(?:Firefox|FxiOS)\/(\d+)/, "Firefox"],
  [/\b(?:Chrome|Chromium|HeadlessChrome|CriOS)\/(\d+)/, "Chrome"],
  [/\bVersion\/(\d+)[\d.]* (?:Mobile\/\w+ )?Safari\//, "Safari"],
];
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\bAndroid\b/, "Android"],
  [/\b(?:iPhone|iPad)\b/, "iOS"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
];

/** A browser's common name from its User-Agent header; the header itself if the browser is unknown. */
export function browserName(userAgent: string): string {
  const system = SYSTEMS.find(([form]) => form.test(userAgent))?.[1];
  for (const [form, name] of BROWSERS) {
    const version = form.exec(userAgent)?.[1];
    if (version !== undefined) return `${name} ${version}${system === undefined ? "" : ` on ${system}`}`;
  }
  return userAgent;
}
