/**
 * The parts of a browser's DOM that the page uses. The rest of the program has no DOM, so its types are not
 * available.
 */
export interface PageElement {
  textContent: string | null;
  hidden: boolean;
  className: string;
  value: string;
  disabled: boolean;
  readonly files: { readonly [index: number]: Blob & { readonly name: string } } | null;
  append(...nodes: (PageElement | string)[]): void;
  replaceChildren(...nodes: (PageElement | string)[]): void;
  addEventListener(type: string, listener: (event: PageEvent) => void): void;
}

export interface PageEvent {
  readonly dataTransfer?: { readonly files: PageElement["files"] };
  preventDefault(): void;
}

declare const document: {
  getElementById(id: string): PageElement | null;
  createElement(name: string): PageElement;
};

/** @throws Error if the page has no such element */
export function element(id: string): PageElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`there is no ${id}`);
  return found;
}

/** Accepts only text and elements, so nothing from a checked file is ever interpreted as markup. */
export function make(name: string, className: string, ...content: (PageElement | string)[]): PageElement {
  const made = document.createElement(name);
  made.className = className;
  made.append(...content);
  return made;
}
