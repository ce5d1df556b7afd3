// Command line of the guest's builder: build.ts [--out DIR]. Without --out it fills the cache. Prints the build as JSON.
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { buildGuest, ensureGuest } from './build-guest.ts';

const { values } = parseArgs({ options: { out: { type: 'string' } } });
const log = (line: string) => console.error(line);
const build = values.out ? await buildGuest({ outDir: resolve(values.out), log }) : await ensureGuest({ log });
console.log(JSON.stringify(build, null, 2));
