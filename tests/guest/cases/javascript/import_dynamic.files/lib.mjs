export default 'from a module'
