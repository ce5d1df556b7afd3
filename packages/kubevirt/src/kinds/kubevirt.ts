/** The KubeVirt kinds: types, names, served resources, CustomResourceDefinitions. */
export * from './kinds.ts';
export * from './resources.ts';
