/** Stands for a picture where there is no bundler, which would give its address. */
export default 'picture.svg';
