/** What kubectl does with objects of any kind. */
import type { Group } from '../steps.ts';
import { ACCESS } from './access.ts';
import { CHANGE } from './change.ts';
import { CREATE } from './create.ts';
import { CUSTOM_RESOURCES } from './custom-resources.ts';
import { DISCOVERY } from './discovery.ts';
import { READ } from './read.ts';
import { REMOVE } from './remove.ts';

export const VERBS: readonly Group[] = [
  ...READ,
  ...CHANGE,
  ...REMOVE,
  ...CREATE,
  ...DISCOVERY,
  ...ACCESS,
  ...CUSTOM_RESOURCES,
];
