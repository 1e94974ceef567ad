import type { JSX } from "preact";

/** Paths in a 24 × 24 box. Next to a word, an icon is hidden from screen readers. */
const PATHS = {
  overview: "M4 13h6V4H4zm0 7h6v-5H4zm10 0h6v-9h-6zm0-16v5h6V4z",
  tasks: "M4 6h2m4 0h10M4 12h2m4 0h10M4 18h2m4 0h10",
  agents: "M12 4v3M6 9h12a2 2 0 0 1 2 2v6a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2v-6a2 2 0 0 1 2-2zm3 4v1m6-1v1m-6 3h6",
  approvals: "M9 12l2.5 2.5L16 10M12 3l8 3v6c0 4.5-3.4 7.7-8 9-4.6-1.3-8-4.5-8-9V6z",
  vault: "M5 5h11l3 3v11H5zm3 0v5h7V5M8 19v-5h8v5",
  connectors: "M9 4v5m6-5v5M7 9h10v3a5 5 0 0 1-10 0zm5 8v4",
  ledger: "M6 3h12v18l-3-2-3 2-3-2-3 2zm3 5h6m-6 4h6",
  settings: "M4 7h9m4 0h3M4 17h3m4 0h9M15 5v4M9 15v4",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "M6 6l12 12M18 6L6 18",
  stop: "M8 3h8l5 5v8l-5 5H8l-5-5V8zm0 9h8",
  play: "M8 5l11 7-11 7z",
  copy: "M9 9h10v11H9zM5 15V4h10",
  theme: "M12 4a8 8 0 1 0 0 16zM12 4v16",
  out: "M14 4H6v16h8m-3-8h10m-3-3l3 3-3 3",
  search: "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14zm5 12l4 4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }): JSX.Element {
  return (
    <svg
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.75"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

export function Mark(): JSX.Element {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#17645c" />
      <path d="M7 26V13a9 9 0 0 1 18 0v13h-4V13a5 5 0 0 0-10 0v13zM14 14h4v12h-4z" fill="#fff" />
    </svg>
  );
}
