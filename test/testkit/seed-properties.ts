/** Loaded before each test file (`node --import`): properties of fast-check draw from the seed of `seed.ts`; sources load fast. */
import '../../packages/coracle/src/config/resolve-sources.ts';
import fc from 'fast-check';
import { seed } from './seed.ts';

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });
