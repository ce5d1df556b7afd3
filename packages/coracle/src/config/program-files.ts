/**
 * Where this program's own files lie: in a checkout beside the sources that run, in a build (tools/build) all programs in
 * one folder, the launcher above it.
 */
import { fileURLToPath } from 'node:url';

/** Set by the build: the commit that was built; empty when it is not known. */
declare const CORACLE_BUILT_COMMIT: string | undefined;

const isBuilt = !import.meta.url.endsWith('.ts');
const at = (inCheckout: string, inBuild: string): string =>
  fileURLToPath(new URL(isBuilt ? inBuild : inCheckout, import.meta.url));

/** What Node is given to run the command line. */
export const MAIN_FILE = at('../main.ts', './main.js');
/** The script that users call. */
export const LAUNCHER_FILE = at('../../../../coracle', '../coracle');
/**
 * Flags of the engine for a program that stays, as the launcher gives them: the young generation is as large as makes creates
 * cheap, and is given back when nobody asks (`compose/give-memory-back.ts`); an old generation that is collected when it has
 * grown by 150 %, not to four times its size, is less memory under load.
 */
export const ENGINE_FLAGS = ['--max-semi-space-size=16', '--heap-growing-percent=150'];
/** Of a build: the commit it was made of. Undefined in a checkout, which knows it from Git. */
export const BUILT_COMMIT: string | undefined =
  typeof CORACLE_BUILT_COMMIT === 'string' ? CORACLE_BUILT_COMMIT : undefined;
