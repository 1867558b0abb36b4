/** Stands for a stylesheet where there is no bundler: every class has its own name. */
const classNames = new Proxy({}, { get: (_, name) => String(name) });

export default classNames;
