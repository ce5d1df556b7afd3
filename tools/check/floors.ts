/**
 * The import check: floors import downward only, rooms of a floor in their listed order, control rooms never one
 * another, nobody but server and cmd the server's inside, and `node:` modules stay out of what must run in any engine.
 * The order is data: floors.json.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

export interface FloorPlan {
  readonly floors: readonly string[];
  readonly rooms: Readonly<Record<string, readonly string[]>>;
  readonly isolatedRooms: readonly string[];
  readonly noServerInside: readonly string[];
  readonly noNodeModules: readonly string[];
  readonly nodeModulesAllowed: readonly string[];
}

/** One import of one file; paths are relative to the repository's root. */
export interface Import {
  readonly file: string;
  readonly target: string;
  /** `import type`: erased at run time, so it may cross a room's order, never a floor's. */
  readonly typeOnly: boolean;
}

const IMPORT =
  /(?:^|\n)\s*(import|export)\s+(type\s+)?[^'"\n;]*?(?:\{[^}]*\}[^'"\n;]*?)?from\s+['"]([^'"]+)['"]|(?:^|\n)\s*import\s+['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)/g;

/** The imports of a source text; relative targets are resolved against the file. */
export function importsOf(file: string, source: string): Import[] {
  const found: Import[] = [];
  for (const match of source.matchAll(IMPORT)) {
    const target = match[3] ?? match[4] ?? match[5]!;
    found.push({
      file,
      target: target.startsWith('.') ? join(dirname(file), target) : target,
      typeOnly: match[2] !== undefined,
    });
  }
  return found;
}

const place = (file: string): { floor: string; room: string } | undefined => {
  const parts = file.split('/');
  if (parts[0] !== 'src' || parts.length < 3) return undefined;
  return { floor: parts[1]!, room: parts.length > 3 ? parts[2]! : '' };
};

/** What is wrong with these imports under this plan, one line each; empty when all is well. */
export function floorViolations(imports: readonly Import[], plan: FloorPlan): string[] {
  const wrong: string[] = [];
  const isTest = (file: string): boolean => /\.(test|contract|fixture)\.ts$/.test(file);
  for (const { file, target, typeOnly } of imports) {
    const from = place(file);
    if (!from || isTest(file)) continue;
    const floorIndex = plan.floors.indexOf(from.floor);
    if (floorIndex < 0) {
      wrong.push(`${file}: floor "${from.floor}" is not in tools/check/floors.json`);
      continue;
    }
    if (target.startsWith('node:')) {
      if (plan.noNodeModules.includes(from.floor) && !plan.nodeModulesAllowed.includes(file))
        wrong.push(`${file}: imports ${target}, but ${from.floor}/ must run in any JavaScript engine`);
      continue;
    }
    const to = place(target);
    if (!to) continue;
    const toIndex = plan.floors.indexOf(to.floor);
    if (toIndex > floorIndex) wrong.push(`${file}: ${from.floor}/ imports upward from ${to.floor}/ (${target})`);
    if (to.floor === 'server' && plan.noServerInside.includes(from.floor))
      wrong.push(`${file}: ${from.floor}/ reaches inside server/ (${target}); use the client`);
    if (to.floor !== from.floor || to.room === from.room || from.room === '' || to.room === '') continue;
    if (plan.isolatedRooms.includes(from.floor)) {
      wrong.push(
        `${file}: ${from.floor}/${from.room} imports ${to.floor}/${to.room}; one controller never imports another`,
      );
      continue;
    }
    const rooms = plan.rooms[from.floor];
    if (rooms && !typeOnly && rooms.indexOf(to.room) > rooms.indexOf(from.room))
      wrong.push(`${file}: room ${from.room} imports ${to.room}, which comes after it (${target})`);
  }
  return wrong;
}

/** What only one place may do: a pattern, and the files it is allowed in. */
const MONOPOLIES: readonly { readonly pattern: RegExp; readonly allowed: RegExp; readonly message: string }[] = [
  {
    pattern: /from 'node:child_process'/,
    allowed: /^src\/base\/process\//,
    message: 'only base/process starts processes',
  },
  {
    pattern: /\bDate\.now\(|\bperformance\.now\(|\bnew Date\(\)/,
    allowed: /^src\/base\/clock\//,
    message: 'only base/clock reads the time; take a Clock',
  },
  {
    pattern: /\bprocess\.(env|argv)\b/,
    allowed: /^src\/(cmd|base\/process)\//,
    message: 'only cmd/ reads flags and the environment',
  },
];

/** Breaches of those monopolies in one file; comments do not count. */
export function monopolyViolations(file: string, source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '');
  if (/\.(test|contract|fixture)\.ts$/.test(file)) return [];
  return MONOPOLIES.filter(({ pattern, allowed }) => pattern.test(code) && !allowed.test(file)).map(
    ({ message }) => `${file}: ${message}`,
  );
}

/** Reads every source file below `root`/src and returns the violations. */
export function checkFloors(root: string): string[] {
  const plan = JSON.parse(readFileSync(resolve(root, 'tools/check/floors.json'), 'utf8')) as FloorPlan;
  const files = readdirSync(resolve(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
  return files.flatMap((file) => {
    const source = readFileSync(resolve(root, file), 'utf8');
    return [...floorViolations(importsOf(file, source), plan), ...monopolyViolations(file, source)];
  });
}
