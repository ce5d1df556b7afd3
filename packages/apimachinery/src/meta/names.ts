/** Names and the metadata rules built on them: the face of this pair of files. */
export * from './name-rules.ts';
export * from './validate-object-meta.ts';
