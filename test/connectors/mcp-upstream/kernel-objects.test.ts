import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { KernelObjects } from "../../../src/connectors/mcp-upstream/stdio/kernel-objects.ts";
import { directory } from "./programs.ts";

test("the users of kernel objects are their creators, whoever owns them, and users who have keys", () => {
  using proc = directory();
  mkdirSync(join(proc.path, "sysvipc"));
  const files = {
    "sysvipc/shm": `       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime
         0          7   600                  4096 99999 99999      0 60800 60800 60706 60706          0
`,
    "sysvipc/msg": `       key      msqid perms      cbytes       qnum lspid lrpid   uid   gid  cuid  cgid      stime
 987654321          3   644           0          0     0     0 60707 60707 60707 60707          0
`,
    "sysvipc/sem": "       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime\n",
    "key-users": `    0:     9 8/8 3/1000000 56/25000000
60999:     3 3/3 3/200 43/20000
`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(proc.path, name), text);
  expect([...new KernelObjects(proc.path).owners()].sort()).toEqual([0, 60706, 60707, 60999]);
});

test("there are none if the system lists none", () => {
  using proc = directory();
  expect(new KernelObjects(proc.path).owners()).toEqual(new Set());
});
