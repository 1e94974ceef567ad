import type { VaultScope } from "../../../../http/api.ts";

/** A path, with the documents and paths below it. */
export interface ScopeNode {
  readonly path: string;
  /** The last segment of the path. */
  readonly name: string;
  /** The number of documents in the scope and below it. */
  readonly documents: number;
  readonly children: readonly ScopeNode[];
}

interface MutableScopeNode {
  readonly path: string;
  readonly name: string;
  documents: number;
  readonly children: Map<string, MutableScopeNode>;
}

/** Builds the tree of scopes below a root with an empty path. Intermediate paths without documents are nodes too. */
export function treeOf(scopes: readonly VaultScope[]): ScopeNode {
  const root: MutableScopeNode = { path: "", name: "", documents: 0, children: new Map() };
  for (const { scope, documents } of scopes) {
    let node = root;
    node.documents += documents;
    if (scope === "/") continue;
    for (const name of scope.split("/")) {
      const path = node.path === "" ? name : `${node.path}/${name}`;
      const child: MutableScopeNode = node.children.get(name) ?? {
        path,
        name,
        documents: 0,
        children: new Map(),
      };
      node.children.set(name, child);
      child.documents += documents;
      node = child;
    }
  }
  return grown(root);
}

function grown({ path, name, documents, children }: MutableScopeNode): ScopeNode {
  return {
    path,
    name,
    documents,
    children: [...children.values()].map(grown).sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

/** The tree reduced to nodes whose path contains the text, and their ancestors. */
export function matching(node: ScopeNode, text: string): ScopeNode | null {
  if (node.path !== "" && node.path.includes(text)) return node;
  const children = node.children.flatMap((child) => matching(child, text) ?? []);
  return children.length > 0 || node.path === "" ? { ...node, children } : null;
}
