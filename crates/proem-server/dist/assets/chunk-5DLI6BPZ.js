import{f as e}from"./chunk-2H2YMU5M.js";e();
