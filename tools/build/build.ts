/** `npm run build [-- DIR]`: the package that is installed, in DIR (dist/ of the checkout). See README.md. */
import { resolve } from 'node:path';
import { bundle } from './bundle.ts';

const root = resolve(import.meta.dirname, '../..');
const target = resolve(process.argv[2] ?? `${root}/dist`);
// What is installed for all users of a host is theirs to read, whatever set-up is careful about.
process.umask(0o022);
const began = performance.now();
const { files, bytes } = await bundle(root, target);
const seconds = ((performance.now() - began) / 1000).toFixed(1);
console.error(`built ${target}: ${files} files of code, ${(bytes / 1e6).toFixed(1)} MB, in ${seconds} s`);
console.error(`install it: npm install --global ${target}`);
